/*
 * A file that appears complete or not at all: written under another name in the same directory,
 * then renamed. A full disk or a kill leaves the old file unchanged.
 */
#ifndef KYMO_BASE_FILES_ATOMIC_FILE_H
#define KYMO_BASE_FILES_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/format.h"

struct atomic_file {
	FILE *file;
	char path[KYMO_PATH_BYTES];
	char temporary[KYMO_PATH_BYTES + 32];
	bool replace;
};

/* -EEXIST: path exists and replace is false. */
int atomic_file_open(struct atomic_file *aside, const char *path, bool replace,
		     struct kymo_error *err);
/* Flushes, syncs and renames. Deletes the temporary file on failure. */
int atomic_file_commit(struct atomic_file *aside, struct kymo_error *err);
void atomic_file_discard(struct atomic_file *aside); /* does nothing after a commit */

/* Returns 0, or -EEXIST and *err. */
int atomic_file_check(const char *path, bool replace, struct kymo_error *err);

#endif
