/*
 * A consistent copy of one stream at one moment: head, rows, open zones and totals agree, whatever
 * the writer does meanwhile. The store and the snapshot writer read streams through it.
 *
 *	stream_image_take()	a ring: everything. A chain: its head
 *	run_files_list_all()	again, after all heads: all rows below a head are in listed segments
 *	stream_image_segments()	a chain: its segments
 *	stream_image_total()	folds the rows that the totals lack
 */
#ifndef KYMO_BASE_FILES_STREAM_IMAGE_H
#define KYMO_BASE_FILES_STREAM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/readat.h"
#include "base/files/run_files.h"
#include "base/files/totals_image.h"

/* say: called with a sentence for each problem that does not prevent reading. */
struct stream_image_sink {
	void (*say)(void *context, const char *sentence);
	void *context;
	/* memory that images may still take, decremented; NULL: no limit. The newest rows are
	   kept. */
	uint64_t *room_bytes;
};

/* Consecutive rows. */
struct stream_image_run {
	uint64_t first_row, rows;
	uint64_t sequence; /* of the segment */
	const unsigned char *memory; /* a ring's */
	/* a segment's; closed if too many files are open: stream_image_rows() reopens it */
	struct readat file;
	uint64_t offset; /* of the first row, in the file */
};

struct stream_image {
	const struct run_files *source;
	char process[RUN_FILES_PATH_BYTES];
	char label[RUN_FILES_PATH_BYTES + 16]; /* "p12-345/s1" */
	struct kymo_stream_head head;
	struct kymo_stream_live live; /* with the head and floor of this moment */
	struct kymo_open_stack open;
	uint64_t kept; /* rows in runs */
	uint64_t rows_most; /* rows of a ring that memory allows */
	uint64_t left_out; /* older rows of a ring beyond that */
	struct stream_image_run *runs; /* oldest first */
	size_t run_count, run_room_bytes;
	unsigned char *ring; /* pages: the slots */
	size_t ring_bytes;
	struct totals_image totals; /* image NULL: the stream has none */
};

#define STREAM_IMAGE_ROWS_MAX (UINT64_C(1) << 60) /* a larger number is damaged */

/* -ENODATA, without *err: the stream was being created, possibly when the program died; it has no
   rows. */
int stream_image_take(struct stream_image *copy, const struct run_files *source,
		      const char *process, uint32_t id, const struct stream_image_sink *sink,
		      struct kymo_error *err);
/* open_files: the number of descriptors that may stay open; decremented. */
void stream_image_segments(struct stream_image *copy, const struct run_files_list *files,
			   size_t *open_files, const struct stream_image_sink *sink);
void stream_image_total(struct stream_image *copy, const struct stream_image_sink *sink);
/* Copies rows [first, first + count) up to the first gap. Returns the number copied. */
uint64_t stream_image_rows(const struct stream_image *copy, uint64_t first, uint64_t count,
			   void *out);
void stream_image_free(struct stream_image *copy); /* also after a failed take */

/* Between stream_image.c and stream_image_segments.c. */
void stream_image_say(const struct stream_image_sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds the rows of a run that are stored: not those in holes of `file`, where its first row is at
   offset `at`. */
int stream_image_add_run(struct stream_image *copy, const struct stream_image_run *run,
			 const struct readat *file, uint64_t at);

#endif
