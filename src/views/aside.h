/*
 * A file that appears whole or not at all: written aside, in the same directory, and renamed at the end. A full disk
 * or a kill leaves the old file as it was.
 */
#ifndef KYMO_VIEWS_ASIDE_H
#define KYMO_VIEWS_ASIDE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/format.h"

struct aside {
	FILE *file;
	char path[KYMO_PATH_BYTES];
	char temporary[KYMO_PATH_BYTES + 32];
	bool replace;
};

/* -EEXIST where path is there and replace is not set. */
int aside_open(struct aside *aside, const char *path, bool replace, struct kymo_error *err);
/* Flushes, syncs and renames; on failure the temporary file goes. */
int aside_commit(struct aside *aside, struct kymo_error *err);
void aside_discard(struct aside *aside); /* after a commit it does nothing */

/* 0, or -EEXIST with what to do. */
int aside_check(const char *path, bool replace, struct kymo_error *err);

#endif
