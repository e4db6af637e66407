/* Snapshots: kymo_snapshot() from inside the program, and the same from outside. */
#ifndef KYMO_RECORD_SNAPSHOT_H
#define KYMO_RECORD_SNAPSHOT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/format.h"
#include "base/schema.h"

/* Selects the streams and rows of a capture. */
struct kymo__choice {
	/* Called once per stream, before its rows. False: leave it out. */
	bool (*stream)(void *context, const struct kymo_stream_head *head);
	/* Called for each row, oldest first: first for all rows with writes false, then again with
	   writes true. The second answer counts. */
	bool (*row)(void *context, const void *row, bool writes);
	/* Called before the rows of a segment, with its last row. False: none of them is wanted,
	   and they are not read. NULL: all are shown to row(). */
	bool (*segment)(void *context, const void *last_row);
	/* True if the oldest row kept began after the selected start, so that rows are missing. */
	bool (*misses)(void *context, const void *oldest_row);
	void *context;
	bool keeps_open; /* the zones that are open now belong to the selection */
	/* Set: the moment from which the times of the file count. NULL: as in the recording. */
	const struct kymo_clock_pair *epoch;
};

/*
 * Writes processes of a run (a NULL-terminated list of directory names; NULL: all) to one file.
 * Each stream is consistent, whatever its writer does meanwhile. The file is written under another
 * name and renamed: on error an existing file is intact and no other file is left. Works on live
 * and dead runs, with both directories of a supervised run. libc only, no malloc.
 */
int kymo__snapshot_write(const char *run_dir, const char *const *processes, const char *path,
			 struct kymo_error *err);
/* The same, of the selected rows of all processes. Totals cover these rows; there are none in
   streams that lack rows of the selection. */
int kymo__snapshot_write_chosen(const char *run_dir, const struct kymo__choice *choice,
				const char *path, struct kymo_error *err);
/* Writes the selected rows of this process, as above. */
int kymo__snapshot_choose(const struct kymo__choice *choice, const char *path,
			  struct kymo_error *err);

#endif
