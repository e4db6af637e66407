/*
 * A file that appears whole or not at all: written aside, in the same directory, and renamed at the
 * end. A full disk or a kill leaves the old file as it was.
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

/* -EEXIST where path is there and replace is not set. */
int atomic_file_open(struct atomic_file *aside, const char *path, bool replace,
		     struct kymo_error *err);
/* Flushes, syncs and renames; on failure the temporary file goes. */
int atomic_file_commit(struct atomic_file *aside, struct kymo_error *err);
void atomic_file_discard(struct atomic_file *aside); /* after a commit it does nothing */

/* 0, or -EEXIST with what to do. */
int atomic_file_check(const char *path, bool replace, struct kymo_error *err);

#endif
