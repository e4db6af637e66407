/*
 * Writes a recording as the recorder does (base/format.h), from outside of any program: a dead
 * directory with streams, names, threads and control pages. It is made under another name, and
 * renamed when it is complete.
 *
 * Times are ns since 1970 plus RECORDING_WRITER_ORIGIN, so that a time before 1970 (a trace that
 * counts from 0) is a positive number of ticks, too.
 */
#ifndef KYMO_IMPORT_RECORDING_WRITER_H
#define KYMO_IMPORT_RECORDING_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files/safe_path.h"
#include "base/files/totals_image.h"
#include "base/format.h"
#include "base/schema.h"

#define RECORDING_WRITER_ORIGIN INT64_C(1000000000000000000)

struct writer_stream {
	int fd; /* of the current segment, while rows are written; -1: closed */
	uint32_t id;
	const struct schema_table *table; /* NULL: not begun */
	uint64_t rows, segment_rows; /* all; of the current segment */
	uint64_t sequence;
	char *buffer;
	size_t buffered, buffer_bytes;
	struct totals_image totals;
};

struct writer_process {
	int dir;
	uint32_t stream_count;
	struct writer_stream streams[SCHEMA_COUNT];
	struct kymo_control control; /* the caller fills pid, rank, program, argv */
	int64_t first_ns, last_ns; /* of its rows, since 1970; the caller sets them */
	int error; /* the first, negative; later calls do nothing */
};

struct recording_writer {
	struct safe_dir parent;
	int dir; /* -1: not begun */
	char part[NAME_MAX + 1]; /* its name while it is written */
	char path[KYMO_PATH_BYTES];
	struct kymo_run_file run; /* the caller fills program, argv, name */
	int64_t first_ns, last_ns; /* of all rows, since 1970 */
	bool any;
};

/* A name: source, text, file, line. */
struct writer_name {
	const char *text;
	uint32_t text_bytes;
	uint32_t file_bytes; /* the file follows the text */
	uint32_t line;
	uint32_t source;
};

/* path must not exist. */
int recording_writer_begin(struct recording_writer *writer, const char *path,
			   struct kymo_error *err);
/* The run file, then the rename. */
int recording_writer_commit(struct recording_writer *writer, struct kymo_error *err);
/* Removes what was written; nothing after a commit. */
void recording_writer_discard(struct recording_writer *writer);

int writer_process_begin(struct recording_writer *writer, struct writer_process *process,
			 int32_t pid, uint64_t starttime, struct kymo_error *err);
/* A zeroed row of the table, to be filled before the next call; never NULL. */
void *writer_process_row(struct writer_process *process, enum schema_id table);
/* Completes the streams alone. */
int writer_streams_end(struct writer_process *process);
/* Names and threads begin at index 1; entry 0 of each list is not used. */
int writer_process_end(struct recording_writer *writer, struct writer_process *process,
		       const struct writer_name *names, size_t name_count,
		       const struct kymo_thread_entry *threads, size_t thread_count,
		       struct kymo_error *err);
void writer_process_discard(struct writer_process *process);

static inline uint64_t writer_ticks(int64_t ns)
{
	return (uint64_t)(ns + RECORDING_WRITER_ORIGIN);
}

#endif
