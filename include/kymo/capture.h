/*
 * A part of a recording as a file: the rows between two moments that somebody wants, and no others.
 * The file is a snapshot like kymo_snapshot()'s. For runtimes that save what their devices did
 * (compat/include/nrt).
 */
#ifndef KYMO_CAPTURE_H
#define KYMO_CAPTURE_H

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row, as far as a capture may choose by it. What its table has no column for is 0. */
struct kymo_captured {
	const char *table; /* "device.ops" */
	uint64_t ticks; /* when it began */
	uint32_t name, device, queue, model; /* the columns of those names, ids of kymo_name() */
	uint32_t kind; /* of an operation: enum kymo_device_kind of <kymo/device.h> */
	int32_t core;
};

struct kymo_capture {
	size_t bytes; /* sizeof(struct kymo_capture) */
	uint64_t from_ticks; /* rows that began before are left out */
	uint64_t until_ticks; /* and those that began after; 0: none */
	/* Which tables go in: those for which it is true. NULL: all. */
	bool (*wants_table)(void *context, const char *table);
	/* Which of their rows: called twice for each row, for all rows of a stream with writes
	   false, in the order in which they were written, and then again with writes true; the
	   answer to the second call counts. NULL: all. */
	bool (*wants_row)(void *context, const struct kymo_captured *row, bool writes);
	void *context;
};

/*
 * Writes it, aside and renamed: on error a file that was there is whole. 0, or a negative errno and
 * *err. It is as kymo_snapshot(): no malloc, not for signal handlers; a row that is written
 * meanwhile may be in it or not. Rows of that time which a ring has overwritten are counted in the
 * file (kymo.streams: overwritten), whoever wanted them.
 */
KYMO__EXPORT int kymo_capture_write(const char *path, const struct kymo_capture *capture,
				    struct kymo_error *err);

/* Streams of that table ("device.ops") that are made from now on keep so many rows, where they keep
   more than usual by it and do not keep all anyway. 0; -EINVAL: no such table yet. */
KYMO__EXPORT int kymo_keep_rows(const char *table, uint64_t rows);

#ifdef __cplusplus
}
#endif

#endif
