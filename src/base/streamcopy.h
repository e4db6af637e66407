/*
 * A copy of one stream as of one moment: head, rows, open zones, totals that agree with one another, whatever the
 * writer does meanwhile. The store reads recordings through it; the snapshot writer writes what it gives.
 *
 *	streamcopy_take()	a ring: all of it. A chain: how far it goes
 *	source_files()		again, after all heads: a row below a head is in a segment that is listed then
 *	streamcopy_segments()	a chain: its segments
 *	streamcopy_total()	folds what the totals do not hold yet
 */
#ifndef KYMO_BASE_STREAMCOPY_H
#define KYMO_BASE_STREAMCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/readat.h"
#include "base/source.h"
#include "base/totalscopy.h"

/* Called with a sentence for each thing that is wrong but leaves something to read. */
struct streamcopy_sink {
	void (*say)(void *context, const char *sentence);
	void *context;
};

/* Rows that lie one after another. */
struct streamcopy_run {
	uint64_t first_row, rows;
	uint64_t sequence; /* of the segment */
	const unsigned char *memory; /* a ring's */
	struct readat
		file; /* a segment's; closed where too many would be open: streamcopy_rows() opens it again */
	uint64_t offset; /* of the first row, in the file */
};

struct streamcopy {
	const struct source *source;
	char process[SOURCE_PATH_BYTES];
	char label[SOURCE_PATH_BYTES + 16]; /* "p12-345/s1" */
	struct kymo_stream_head head;
	struct kymo_stream_live live; /* head and floor are those of this moment */
	struct kymo_open_stack open;
	uint64_t kept; /* rows in runs */
	struct streamcopy_run *runs; /* oldest first */
	size_t run_count, run_room_bytes;
	unsigned char *ring; /* pages: the slots */
	size_t ring_bytes;
	struct totalscopy totals; /* without image: the stream has none */
};

#define STREAMCOPY_ROWS_MAX (UINT64_C(1) << 60) /* more were never written: a damaged number */

/* -ENODATA (and no sentence): the stream is being made, or the program died then; there is nothing of it. */
int streamcopy_take(struct streamcopy *copy, const struct source *source, const char *process,
		    uint32_t id, const struct streamcopy_sink *sink, struct kymo_error *err);
/* open_files: how many more descriptors may stay open; taken from. */
void streamcopy_segments(struct streamcopy *copy, const struct source_list *files,
			 size_t *open_files, const struct streamcopy_sink *sink);
void streamcopy_total(struct streamcopy *copy, const struct streamcopy_sink *sink);
/* Copies rows [first, first + count) as far as they are there without a gap; returns how many. */
uint64_t streamcopy_rows(const struct streamcopy *copy, uint64_t first, uint64_t count, void *out);
void streamcopy_free(struct streamcopy *copy); /* also after a failed take */

/* Between streamcopy.c and streamcopy_segments.c. */
void streamcopy_say(const struct streamcopy_sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int streamcopy_add_run(struct streamcopy *copy, const struct streamcopy_run *run);

#endif
