/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a corpus in an ordinary build: calls the target once for each file in the folders that
 * are named. A folder that is missing or empty is a failure, so that no target goes without seeds.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_MAX ((size_t)4 * 1024 * 1024)

/* Calls the target with the file at PATH, in memory that is exactly as large as the file. */
static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	char *large = malloc(INPUT_MAX);
	uint8_t *exact = NULL;
	int r = -1;

	if (file && large) {
		size_t size = fread(large, 1, INPUT_MAX, file);
		exact = malloc(size ? size : 1);
		if (exact && !ferror(file)) {
			memcpy(exact, large, size);
			LLVMFuzzerTestOneInput(exact, size);
			r = 0;
		}
	}
	if (r < 0)
		fprintf(stderr, "%s: cannot be read\n", path);
	if (file)
		fclose(file);
	free(large);
	free(exact);
	return r;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Returns how many files were replayed, or -1. */
static int replay_folder(const char *folder)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_visible, alphasort);
	int done = 0;

	for (int i = 0; i < n; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (done >= 0)
			done = replay_file(path) < 0 ? -1 : done + 1;
		free(entries[i]);
	}
	free(entries);
	if (n <= 0)
		fprintf(stderr, "%s: no corpus\n", folder);
	return n <= 0 ? -1 : done;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int n = replay_folder(argv[i]);
		if (n < 0)
			return EXIT_FAILURE;
		printf("%s: %d files\n", argv[i], n);
	}
	return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
