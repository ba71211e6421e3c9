/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry that each fuzz target defines: libFuzzer calls it with what it makes up, driver.c with
 * the files of the corpus. It returns 0, and ends the process (assert, abort) on a finding.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
