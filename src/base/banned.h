/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forced into every translation unit by the build: the functions named here cannot be used, and the
 * compiler's message says which one and why.
 */
#pragma once

#ifdef __GNUC__
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets strtok strtok_r
#pragma GCC poison atoi atol atoll atof tmpnam mktemp tempnam system popen rand srand
#endif
