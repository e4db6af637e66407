/* The streams of a recording_writer: chains of segments, with the totals of zones complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/page_memory.h"
#include "import/recording_writer.h"

#define SEGMENT_ROWS 262144u /* fewer files than a program's, which must be able to give them up */
#define BUFFER_ROWS 2048u

static void writer_file_head(struct kymo_file_head *head, const char *magic, size_t bytes)
{
	memcpy(head->magic, magic, 8);
	head->version = KYMO_FORMAT_VERSION;
	head->head_bytes = (uint32_t)bytes;
}

static int rows_write_all(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count) {
		ssize_t done = write(fd, at, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		at += done;
		count -= (size_t)done;
	}
	return 0;
}

static int open_new(const struct writer_process *process, const char *name)
{
	int fd = openat(process->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);

	return fd < 0 ? -errno : fd;
}

/* ---- segments ------------------------------------------------------------------------------ */

static int rows_begin_segment(struct writer_process *process, struct writer_stream *stream)
{
	struct kymo_segment_head head = { .stream_id = stream->id,
					  .row_bytes = (uint32_t)stream->table->row_bytes,
					  .sequence = stream->sequence,
					  .first_row = stream->rows,
					  .rows = SEGMENT_ROWS };
	char name[48];

	writer_file_head(&head.file, KYMO_MAGIC_SEGMENT, sizeof(head));
	snprintf(name, sizeof(name), "s%u.%llu", stream->id, (unsigned long long)stream->sequence);
	stream->fd = open_new(process, name);
	if (stream->fd < 0)
		return stream->fd;
	stream->sequence++;
	stream->segment_rows = 0;
	return rows_write_all(stream->fd, &head, sizeof(head));
}

static int rows_continue_segment(struct writer_process *process, struct writer_stream *stream)
{
	char name[48];

	snprintf(name, sizeof(name), "s%u.%llu", stream->id,
		 (unsigned long long)stream->sequence - 1);
	stream->fd = openat(process->dir, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	return stream->fd < 0 ? -errno : 0;
}

/* Room for all slots, as totals_image_take() makes it for a stream without rows. */
static void rows_fold_rows(struct writer_stream *stream, uint64_t count)
{
	if (stream->totals.image)
		totals_image_fold(&stream->totals, (const void *)stream->buffer, stream->rows,
				  count);
}

/* Writes the rows of the buffer; a batch never crosses the end of a segment. */
static void flush_rows(struct writer_process *process, struct writer_stream *stream)
{
	const uint64_t rows = stream->buffered / stream->table->row_bytes;
	int rc = 0;

	if (!rows || process->error)
		goto out;
	if (!stream->sequence || stream->segment_rows >= SEGMENT_ROWS)
		rc = rows_begin_segment(process, stream);
	else
		rc = rows_continue_segment(process, stream);
	if (!rc)
		rc = rows_write_all(stream->fd, stream->buffer, stream->buffered);
	rows_fold_rows(stream, rows);
	stream->rows += rows;
	stream->segment_rows += rows;
	if (stream->fd >= 0 && close(stream->fd) && !rc)
		rc = -errno; /* a descriptor of each stream would be too many */
	stream->fd = -1;
	if (rc)
		process->error = rc;
out:
	stream->buffered = 0;
}

/* ---- streams ------------------------------------------------------------------------------- */

static bool begin_stream(struct writer_process *process, struct writer_stream *stream,
			 enum schema_id id)
{
	stream->table = schema_get(id);
	stream->fd = -1;
	stream->id = process->stream_count++;
	stream->buffer_bytes = BUFFER_ROWS * stream->table->row_bytes;
	stream->buffer = malloc(stream->buffer_bytes);
	if (id == SCHEMA_ZONES && totals_image_begin(&stream->totals))
		process->error = -ENOMEM;
	return stream->buffer;
}

void *writer_process_row(struct writer_process *process, enum schema_id table)
{
	static char nowhere[KYMO_ROW_BYTES_MAX];
	struct writer_stream *stream = &process->streams[table];
	char *row;

	if (!stream->buffer && (process->error || !begin_stream(process, stream, table))) {
		process->error = process->error ? process->error : -ENOMEM;
		return nowhere;
	}
	if (stream->buffered == stream->buffer_bytes)
		flush_rows(process, stream);
	row = stream->buffer + stream->buffered;
	stream->buffered += stream->table->row_bytes;
	return memset(row, 0, stream->table->row_bytes);
}

/* ---- heads --------------------------------------------------------------------------------- */

static void describe_columns(struct kymo_stream_head *head, const struct schema_table *table)
{
	head->column_count = (uint32_t)table->column_count;
	for (size_t i = 0; i < table->column_count; i++) {
		const struct kymo_column *from = &table->columns[i];
		struct kymo_column_desc *to = &head->columns[i];

		snprintf(to->name, sizeof(to->name), "%s", from->name);
		to->type = from->type;
		to->offset = (uint32_t)from->offset;
		to->bytes = from->type == KYMO_TEXT ? (uint32_t)from->bytes
						    : (uint32_t)schema_type_bytes(from->type);
		snprintf(to->unit, sizeof(to->unit), "%s", from->unit ? from->unit : "");
	}
}

static int put_totals(struct writer_process *process, struct writer_stream *stream)
{
	struct kymo_totals_head *head = (void *)stream->totals.image;
	char name[48];
	int fd, rc;

	writer_file_head(&head->file, KYMO_MAGIC_TOTALS, sizeof(*head));
	head->count = stream->totals.count;
	snprintf(name, sizeof(name), "s%u.totals", stream->id);
	fd = open_new(process, name);
	if (fd < 0)
		return fd;
	rc = rows_write_all(fd, stream->totals.image,
			    (size_t)kymo_totals_slot_offset(stream->totals.count));
	return close(fd) && !rc ? -errno : rc;
}

static void set_live(struct writer_stream *stream, struct kymo_stream_live *live)
{
	live->head = stream->rows;
	live->segment_next = stream->sequence;
	if (!stream->totals.image)
		return;
	totals_image_finish(&stream->totals, stream->rows);
	live->fold_state = stream->totals.from << 1;
	live->histogram_upto = stream->totals.from;
	live->untotalled = stream->totals.untotalled;
	memcpy(live->child_at[0], stream->totals.child_at, sizeof(live->child_at[0]));
}

static int put_head(struct writer_process *process, struct writer_stream *stream)
{
	union {
		char bytes[KYMO_HEAD_FILE_BYTES];
		struct kymo_stream_head head;
	} *file = calloc(1, sizeof(*file));
	char name[48];
	int fd, rc;

	if (!file)
		return -ENOMEM;
	writer_file_head(&file->head.file, KYMO_MAGIC_STREAM, sizeof(file->head));
	snprintf(file->head.table, sizeof(file->head.table), "%s", stream->table->name);
	file->head.id = stream->id;
	file->head.row_bytes = (uint32_t)stream->table->row_bytes;
	file->head.keep = KYMO_KEEP_ALL;
	file->head.has_totals = stream->totals.image != NULL;
	file->head.has_open_stack = stream->totals.image != NULL;
	describe_columns(&file->head, stream->table);
	set_live(stream, (void *)(file->bytes + KYMO_LIVE_OFFSET));
	snprintf(name, sizeof(name), "s%u.head", stream->id);
	fd = open_new(process, name);
	rc = fd < 0 ? fd : rows_write_all(fd, file, sizeof(*file));
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	free(file);
	return rc;
}

int writer_streams_end(struct writer_process *process)
{
	for (int i = 0; i < SCHEMA_COUNT; i++) {
		struct writer_stream *stream = &process->streams[i];

		if (!stream->buffer)
			continue;
		flush_rows(process, stream);
		if (!process->error)
			process->error = put_head(process, stream);
		if (!process->error && stream->totals.image)
			process->error = put_totals(process, stream);
	}
	return process->error;
}

void writer_process_discard(struct writer_process *process)
{
	for (int i = 0; i < SCHEMA_COUNT; i++) {
		struct writer_stream *stream = &process->streams[i];

		if (!stream->buffer)
			continue;
		if (stream->fd >= 0)
			close(stream->fd);
		free(stream->buffer);
		totals_image_free(&stream->totals);
		stream->buffer = NULL;
	}
	if (process->dir >= 0)
		close(process->dir);
	process->dir = -1;
}
