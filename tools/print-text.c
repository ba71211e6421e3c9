/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints one of the texts that the library makes from its option table (sandlock_text), for the
 * build: man page sources, completions, the JSON Schema.
 */
#include <stdio.h>
#include <stdlib.h>

#include <sandlock/sandlock.h>

int main(int argc, char **argv)
{
	char *text = NULL;

	if (argc != 2 || sandlock_text(argv[1], &text) < 0) {
		fprintf(stderr, "print-text: there is no text %s\n", argc == 2 ? argv[1] : "");
		return EXIT_FAILURE;
	}
	fputs(text, stdout);
	sandlock_free(text);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
