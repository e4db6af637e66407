/*
 * How far each stream of a recording is in the lake. A cursor is the number of its next row; rows
 * before it are in the lake or lost, that is overwritten before they could be written. For each
 * stream, emitted = in the lake + lost + waiting + dropped.
 */
#ifndef KYMO_LAKE_CURSOR_H
#define KYMO_LAKE_CURSOR_H

#include "base/buf.h"
#include "store/store.h"

struct lake_cursor {
	char key[64]; /* process and stream: PID.STARTTIME.NUMBER */
	char table[64];
	uint64_t next, in_lake, lost;
	const struct store_stream *stream; /* NULL: not in the recording any more */
	/* Of the window that is being written. */
	uint64_t to;
	uint64_t window_rows, window_lost;
	bool narrowed;
	struct store_chunk *chunks; /* the stream's own, while it is narrowed */
	size_t chunk_count;
};

struct lake_cursors {
	struct lake_cursor *list;
	size_t count, room;
};

/* One for each stream, at its beginning. 0 or -ENOMEM. */
int lake_cursors_init(struct lake_cursors *cursors, const struct recording *recording);
void lake_cursors_fini(struct lake_cursors *cursors);
/* Sets the cursor of that key; one that is not in the recording is added. 0 or -ENOMEM. */
int lake_cursors_set(struct lake_cursors *cursors, const char *key, const char *table,
		     uint64_t next, uint64_t in_lake, uint64_t lost);
/* Takes the cursors of a file's footer: "KEY=NEXT:IN_LAKE:LOST;…". -EINVAL: damaged. */
int lake_cursors_take(struct lake_cursors *cursors, const char *table, const char *text);
/* Appends those of a table as they will be after the window. */
void lake_cursors_put(const struct lake_cursors *cursors, const char *table, struct buf *out);

/* All rows that the streams of a table have are in the lake: the table was written as a whole. */
void lake_cursors_whole(struct lake_cursors *cursors, const char *table);

/* The sum of all cursors of a table: the name of its next file. */
uint64_t lake_cursors_at(const struct lake_cursors *cursors, const char *table);
/* Lets streams of a table show only rows from their cursors on, at most `most` in all; those that
   are not wanted show none. Returns the number of rows, or -ENOMEM. */
int64_t lake_window_open(struct lake_cursors *cursors, struct recording *recording,
			 const char *table, uint64_t most,
			 bool (*wanted)(const void *context, const struct store_stream *stream),
			 const void *context);
/* Shows all rows again; done: the cursors move to the end of the window. */
void lake_window_close(struct lake_cursors *cursors, struct recording *recording, const char *table,
		       bool done);

#endif
