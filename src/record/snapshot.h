/* One file of everything: kymo_snapshot() from inside the program, and the same for others from
   outside. */
#ifndef KYMO_RECORD_SNAPSHOT_H
#define KYMO_RECORD_SNAPSHOT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/format.h"
#include "base/schema.h"

/* A choice among the streams and rows, for a snapshot of a part. */
struct kymo__choice {
	/* Once for each stream, before its rows. False: it is left out. */
	bool (*stream)(void *context, const struct kymo_stream_head *head);
	/* For each row, oldest first; all of them with writes false, to look at, and then again:
	   that counts. */
	bool (*row)(void *context, const void *row, bool writes);
	/* The oldest row that is there began later than what is chosen: those before it are
	   missing. */
	bool (*misses)(void *context, const void *oldest_row);
	void *context;
};

/*
 * Writes the processes of a run (names of their directories, ended by NULL; NULL: all) as one file,
 * consistent stream by stream whatever their writers do meanwhile. Aside and renamed: on error a
 * file that was there is whole and nothing else is left. Works on live and dead runs, and for both
 * halves of a supervised one. libc only, no malloc.
 */
int kymo__snapshot_write(const char *run_dir, const char *const *processes, const char *path,
			 struct kymo_error *err);
/* Of the streams of this process, what is chosen. Without totals, since those are of all rows. */
int kymo__snapshot_choose(const struct kymo__choice *choice, const char *path,
			  struct kymo_error *err);

#endif
