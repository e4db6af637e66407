/*
 * A capture: selected rows of a recording between two moments, written to a file in the snapshot
 * format. For runtimes that save a profile of their devices (compat/include/nrt).
 */
#ifndef KYMO_CAPTURE_H
#define KYMO_CAPTURE_H

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The columns by which a capture selects rows. Columns that the table lacks are 0. */
struct kymo_captured {
	const char *table; /* "device.ops" */
	uint64_t ticks; /* when it began */
	uint32_t name, device, queue, model; /* the columns of those names, ids of kymo_name() */
	uint32_t kind; /* of an operation: enum kymo_device_kind of <kymo/device.h> */
	int32_t core;
};

struct kymo_capture {
	size_t bytes; /* sizeof(struct kymo_capture) */
	uint64_t from_ticks; /* rows that began earlier are left out */
	uint64_t until_ticks; /* rows that began later are left out; 0: no limit */
	/* True for the tables to include. NULL: all. */
	bool (*wants_table)(void *context, const char *table);
	/* True for the rows to include. Called twice per row: first for all rows of a stream, in
	   the order of writing, with writes false; then again with writes true. The second answer
	   counts. NULL: all. */
	bool (*wants_row)(void *context, const struct kymo_captured *row, bool writes);
	void *context;
};

/*
 * Writes the capture under another name and renames it: after an error an existing file is intact.
 * Returns 0, or a negative errno and *err. Like kymo_snapshot(), it calls no malloc and is not for
 * signal handlers; rows written during the call may be missing. The file counts all overwritten
 * rows of that time (kymo.streams: overwritten), selected or not.
 */
KYMO__EXPORT int kymo_capture_write(const char *path, const struct kymo_capture *capture,
				    struct kymo_error *err);

/* Raises the number of rows that later streams of a table ("device.ops") keep. Has no effect if it
   is below the default or the streams keep all rows. Returns 0; -EINVAL: no such table yet. */
KYMO__EXPORT int kymo_keep_rows(const char *table, uint64_t rows);

#ifdef __cplusplus
}
#endif

#endif
