/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a text made from the option table, for the build: text NAME. */
#include <stdio.h>

#include "base/util.h"
#include "policy/text.h"

int main(int argc, char **argv)
{
	auto_free char *text = argc == 2 ? text_make(argv[1]) : NULL;

	if (!text) {
		fprintf(stderr, "usage: text NAME\n");
		return 2;
	}
	return fputs(text, stdout) < 0 || fflush(stdout) != 0;
}
