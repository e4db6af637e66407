/* One file of everything: kymo_snapshot() from inside the program, and the same for others from outside. */
#ifndef KYMO_RECORD_SNAPSHOT_H
#define KYMO_RECORD_SNAPSHOT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/schema.h"

/*
 * Writes the processes of a run (names of their directories, ended by NULL; NULL: all) as one file, consistent stream by
 * stream whatever their writers do meanwhile. Aside and renamed: on error a file that was there is whole and nothing
 * else is left. Works on live and dead runs, and for both halves of a supervised one. libc only, no malloc.
 */
int kymo__snapshot_write(const char *run_dir, const char *const *processes, const char *path,
			 struct kymo_error *err);
/* Rows of one table of this process that are handed over one by one, and the process's names, threads and clock, as a
   snapshot that holds nothing else. next fills a row and says true, or says that there are no more. */
int kymo__snapshot_rows(enum schema_id table, bool (*next)(void *context, void *out_row),
			void *context, const char *path, struct kymo_error *err);

#endif
