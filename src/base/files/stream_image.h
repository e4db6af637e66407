/*
 * A copy of one stream as of one moment: head, rows, open zones, totals that agree with one
 * another, whatever the writer does meanwhile. The store reads recordings through it; the snapshot
 * writer writes what it gives.
 *
 *	stream_image_take()	a ring: all of it. A chain: how far it goes
 *	run_files_list_all()		again, after all heads: a row below a head is in a segment that is listed then
 *	stream_image_segments()	a chain: its segments
 *	stream_image_total()	folds what the totals do not hold yet
 */
#ifndef KYMO_BASE_FILES_STREAM_IMAGE_H
#define KYMO_BASE_FILES_STREAM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/readat.h"
#include "base/files/run_files.h"
#include "base/files/totals_image.h"

/* Called with a sentence for each thing that is wrong but leaves something to read. */
struct stream_image_sink {
	void (*say)(void *context, const char *sentence);
	void *context;
};

/* Rows that lie one after another. */
struct stream_image_run {
	uint64_t first_row, rows;
	uint64_t sequence; /* of the segment */
	const unsigned char *memory; /* a ring's */
	/* a segment's; closed where too many would be open: stream_image_rows() opens it again */
	struct readat file;
	uint64_t offset; /* of the first row, in the file */
};

struct stream_image {
	const struct run_files *source;
	char process[RUN_FILES_PATH_BYTES];
	char label[RUN_FILES_PATH_BYTES + 16]; /* "p12-345/s1" */
	struct kymo_stream_head head;
	struct kymo_stream_live live; /* head and floor are those of this moment */
	struct kymo_open_stack open;
	uint64_t kept; /* rows in runs */
	struct stream_image_run *runs; /* oldest first */
	size_t run_count, run_room_bytes;
	unsigned char *ring; /* pages: the slots */
	size_t ring_bytes;
	struct totals_image totals; /* without image: the stream has none */
};

#define STREAM_IMAGE_ROWS_MAX (UINT64_C(1) << 60) /* more were never written: a damaged number */

/* -ENODATA (and no sentence): the stream is being made, or the program died then; there is nothing
   of it. */
int stream_image_take(struct stream_image *copy, const struct run_files *source,
		      const char *process, uint32_t id, const struct stream_image_sink *sink,
		      struct kymo_error *err);
/* open_files: how many more descriptors may stay open; taken from. */
void stream_image_segments(struct stream_image *copy, const struct run_files_list *files,
			   size_t *open_files, const struct stream_image_sink *sink);
void stream_image_total(struct stream_image *copy, const struct stream_image_sink *sink);
/* Copies rows [first, first + count) as far as they are there without a gap; returns how many. */
uint64_t stream_image_rows(const struct stream_image *copy, uint64_t first, uint64_t count,
			   void *out);
void stream_image_free(struct stream_image *copy); /* also after a failed take */

/* Between stream_image.c and stream_image_segments.c. */
void stream_image_say(const struct stream_image_sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int stream_image_add_run(struct stream_image *copy, const struct stream_image_run *run);

#endif
