/* What the reader of an nsys export has while it writes a trace: strings, numbers of correlations,
   and the JSON. */
#ifndef KYMO_IMPORT_NSYS_NSYS_TRACE_H
#define KYMO_IMPORT_NSYS_NSYS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"

/* Columns that the tables have, whatever they are called there. */
enum nsys_column {
	NSYS_START,
	NSYS_END,
	NSYS_PID, /* globalPid */
	NSYS_TID, /* globalTid */
	NSYS_NAME, /* a number of StringIds */
	NSYS_OTHER_NAME, /* another one, if that is NULL */
	NSYS_TEXT, /* a text */
	NSYS_CORRELATION,
	NSYS_DEVICE,
	NSYS_CONTEXT,
	NSYS_STREAM,
	NSYS_KIND, /* of a copy, a wait, an event */
	NSYS_BYTES,
	NSYS_FROM_MEMORY,
	NSYS_TO_MEMORY,
	NSYS_GRAPH,
	NSYS_COLUMN_COUNT
};

struct nsys_row {
	uint32_t has; /* bit of each column that is an integer, or a text for NSYS_TEXT */
	int64_t values[NSYS_COLUMN_COUNT];
	const char *text;
	size_t text_bytes;
};

struct nsys_text {
	const char *at;
	size_t bytes;
};

struct nsys_trace {
	int fd;
	struct buf out;
	bool failed; /* the pipe is closed, or no memory */
	uint64_t events;
	int64_t base_ns;
	/* StringIds */
	struct nsys_string {
		int64_t id;
		size_t at;
		uint32_t bytes;
	} * strings;
	size_t string_count, string_room;
	struct buf string_texts;
	struct intern string_index;
	/* A correlation counts in its process; in a trace it counts in all. Those that another
	   process has, too, get a number of their own, from the top. */
	struct nsys_correlation {
		int64_t pid, correlation;
	} * owners, *others;
	size_t owner_count, owner_room, other_count, other_room;
	struct intern owner_index, other_index;
};

static inline bool nsys_has(const struct nsys_row *row, enum nsys_column column)
{
	return row->has >> column & 1;
}

void nsys_trace_begin(struct nsys_trace *trace, int fd);
void nsys_trace_end(struct nsys_trace *trace);
void nsys_trace_fini(struct nsys_trace *trace);

/* One for each table; see nsys_read.c. */
void nsys_take_string(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_session(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_process(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_thread(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_call(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_library(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_overhead(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_range(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_kernel(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_graph(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_copy(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_fill(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_wait(struct nsys_trace *trace, const struct nsys_row *row);
void nsys_take_memory(struct nsys_trace *trace, const struct nsys_row *row);

#endif
