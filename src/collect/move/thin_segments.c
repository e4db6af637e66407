/* Segments of a stream on disk, thinned into one file. Readers take it as a segment with fewer
   rows: those that are missing count as overwritten. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "collect/move/archive_inside.h"
#include "collect/move/thin.h"

#define ROWS_BYTES_MOST (256ull << 20) /* of a batch; its files are sealed, but not trusted */

struct batch_rows {
	struct kymo_segment_head head; /* of the first segment */
	unsigned char *rows;
	size_t count;
};

static int open_for_reading(int directory, const char *name)
{
	return openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* A process that runs has its head in the live directory. */
static bool read_stream_head(const struct archive *archive, const struct archive_segment *segment,
			     struct kymo_stream_head *head)
{
	char path[ARCHIVE_NAME_BYTES + 32];
	bool read;
	int fd;

	snprintf(path, sizeof(path), "%s/s%u.head", segment->process, segment->stream);
	fd = open_for_reading(archive->live_fd, path);
	if (fd < 0)
		fd = open_for_reading(archive->disk_fd, path);
	read = fd >= 0 && archive_read_exactly(fd, head, sizeof(*head), 0);
	if (fd >= 0)
		close(fd);
	return read;
}

static int read_open_segment(int fd, const struct thin_plan *plan, uint64_t sequence,
			     struct batch_rows *batch, bool first)
{
	struct kymo_segment_head head;
	uint64_t bytes, held = batch->count * plan->row_bytes;
	unsigned char *larger;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(head) ||
	    !archive_read_exactly(fd, &head, sizeof(head), 0) ||
	    memcmp(head.file.magic, KYMO_MAGIC_SEGMENT, sizeof(head.file.magic)) != 0 ||
	    head.row_bytes != plan->row_bytes || head.sequence != sequence)
		return -EPROTO;
	bytes = (uint64_t)st.st_size - sizeof(head);
	if (bytes / plan->row_bytes > head.rows)
		bytes = head.rows * plan->row_bytes;
	bytes -= bytes % plan->row_bytes;
	if (bytes > ROWS_BYTES_MOST - held)
		return -EFBIG;
	larger = realloc(batch->rows, held + bytes + 1);
	if (!larger)
		return -ENOMEM;
	batch->rows = larger;
	if (!archive_read_exactly(fd, larger + held, bytes, sizeof(head)))
		return -EPROTO;
	batch->count += bytes / plan->row_bytes;
	if (first)
		batch->head = head;
	return 0;
}

static int read_batch(int directory, const struct archive_segment *const *segments, size_t count,
		      const struct thin_plan *plan, struct batch_rows *batch)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		char name[48];
		int fd;

		snprintf(name, sizeof(name), "s%u.%" PRIu64, segments[i]->stream,
			 segments[i]->sequence);
		fd = open_for_reading(directory, name);
		if (fd < 0)
			return -errno;
		rc = read_open_segment(fd, plan, segments[i]->sequence, batch, !i);
		close(fd);
	}
	return rc;
}

/* The file of the first comes last: a collector that is killed in between has lost rows of one
   batch, which count as overwritten, and has none twice. */
static int replace_segments(int directory, const struct archive_segment *const *segments,
			    size_t count, const void *content, size_t bytes)
{
	char name[48], aside[64];
	int rc;

	snprintf(name, sizeof(name), "s%u.%" PRIu64, segments[0]->stream, segments[0]->sequence);
	snprintf(aside, sizeof(aside), ".%s.part", name);
	rc = atomic_file_put(directory, aside, content, bytes);
	if (rc) {
		unlinkat(directory, aside, 0);
		return rc;
	}
	for (size_t i = count - 1; i > 0; i--) {
		char other[48];

		snprintf(other, sizeof(other), "s%u.%" PRIu64, segments[i]->stream,
			 segments[i]->sequence);
		unlinkat(directory, other, 0);
	}
	return renameat(directory, aside, directory, name) ? -errno : 0;
}

static int write_thinned(struct archive *archive, int directory,
			 const struct archive_segment *const *segments, size_t count,
			 const struct thin_plan *plan, const struct batch_rows *batch,
			 uint64_t period_ns, uint64_t *out_bytes)
{
	uint64_t period_ticks = (uint64_t)((double)period_ns / archive->ns_per_tick);
	unsigned char *content = malloc(sizeof(batch->head) + batch->count * plan->row_bytes + 1);
	struct kymo_segment_head head = batch->head;
	size_t rows = content ? thin_rows(plan, batch->rows, batch->count, period_ticks,
					  archive->ns_per_tick, content + sizeof(head))
			      : SIZE_MAX;
	int rc = rows == SIZE_MAX ? -ENOMEM : 0;

	if (!rc) {
		head.rows = rows;
		memcpy(content, &head, sizeof(head));
		*out_bytes = sizeof(head) + rows * plan->row_bytes;
		rc = replace_segments(directory, segments, count, content, (size_t)*out_bytes);
	}
	if (!rc)
		archive->thinned_rows += batch->count - rows;
	free(content);
	return rc;
}

int archive_thin(struct archive *archive, const struct archive_segment *const *batch, size_t count,
		 uint64_t period_ns, uint64_t *out_bytes)
{
	struct batch_rows rows = { .count = 0 };
	struct kymo_stream_head *head = malloc(sizeof(*head));
	struct thin_plan plan;
	int directory, rc = 1;

	if (!head)
		return -ENOMEM;
	if (read_stream_head(archive, batch[0], head) && thin_plan_make(&plan, head)) {
		directory = archive_open_directory(archive->disk_fd, batch[0]->process);
		rc = directory < 0 ? directory : read_batch(directory, batch, count, &plan, &rows);
		if (!rc)
			rc = write_thinned(archive, directory, batch, count, &plan, &rows,
					   period_ns, out_bytes);
		if (directory >= 0)
			close(directory);
		free(rows.rows);
		/* Damaged, or removed by others: as if it could not be thinned. */
		if (rc == -EPROTO || rc == -ENOENT || rc == -EFBIG)
			rc = 1;
	}
	free(head);
	return rc;
}
