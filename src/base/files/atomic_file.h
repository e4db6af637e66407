/*
 * A file that appears complete or not at all: written under another name in the same directory,
 * then renamed. A full disk or a kill leaves the old file unchanged. The directory is opened once,
 * as safe_path.h describes, and held.
 */
#ifndef KYMO_BASE_FILES_ATOMIC_FILE_H
#define KYMO_BASE_FILES_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/files/safe_path.h"
#include "base/format.h"

#define ATOMIC_FILE_NAME_BYTES (NAME_MAX + 32)

struct atomic_file {
	FILE *file;
	struct safe_dir directory; /* held: all names below are in it */
	char path[KYMO_PATH_BYTES]; /* as the caller has given it, for messages */
	char part[ATOMIC_FILE_NAME_BYTES]; /* the temporary file or folder; "": none */
	char temporary[KYMO_PATH_BYTES + 32]; /* of atomic_file_name() */
	int folder; /* the descriptor of part, if that is a folder */
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

/* For a writer that makes the file by itself, as DuckDB does: aside->temporary is the path to write
   to, and nothing is there. It is in a folder that only this user can access, because such a writer
   follows links. A negative errno where the directory is missing or cannot be written. */
int atomic_file_name(struct atomic_file *aside, const char *path, struct kymo_error *err);
/* With rc 0 renames it to its path, which it replaces; else removes it. Removes the folder. Returns
   rc, or the rename's error. After a failed atomic_file_name() it returns rc. */
int atomic_file_end(struct atomic_file *aside, int rc, struct kymo_error *err);

/* For files of a recording, by a directory's descriptor or AT_FDCWD, without stdio, malloc or sync
   (atomic_file_at.c). Names that begin with a dot are left alone by readers. */

/* FOLDER/.NAME.part; -ENAMETOOLONG. */
int atomic_file_part_name(const char *name, char *out, size_t out_bytes);
/* With rc 0 renames part to name; else, or if that fails, removes part. Returns rc, or the rename's
   error. */
int atomic_file_publish(int directory, const char *part, const char *name, int rc);
/* Replaces a file by these bytes, 0600. */
int atomic_file_put(int directory, const char *name, const void *bytes, size_t count);

#endif
