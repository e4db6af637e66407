/* The rows of a chain: its existing segments, below its head and without duplicates. */
#include <errno.h>
#include <stdio.h>

#include "base/files/stream_image.h"

static int check_segment(const struct stream_image *copy, const struct run_files_item *item,
			 const struct readat *file, struct kymo_segment_head *head,
			 struct kymo_error *err)
{
	char label[sizeof(copy->process) + sizeof(item->name) + 2];
	int rc;

	snprintf(label, sizeof(label), "%s/%s", copy->process, item->name);
	rc = readat_head(file, KYMO_MAGIC_SEGMENT, head, sizeof(*head), label, err);
	if (rc)
		return rc;
	if (head->stream_id != copy->head.id || head->row_bytes != copy->head.row_bytes ||
	    head->sequence != item->sequence)
		return error_set(err, EPROTO,
				 "%s is damaged: its header belongs to another segment", label);
	if (head->first_row >= STREAM_IMAGE_ROWS_MAX || head->rows >= STREAM_IMAGE_ROWS_MAX)
		return error_set(err, EPROTO, "%s is damaged: impossible row numbers", label);
	return 0;
}

/* The rows of a segment that count: within the file, below head, above the previous ones. */
static void clip_segment(const struct stream_image *copy, const struct readat *file,
			 const struct kymo_segment_head *head, struct stream_image_run *run)
{
	const uint64_t row = copy->head.row_bytes, size = readat_size(file);
	const struct stream_image_run *last = copy->run_count ? &copy->runs[copy->run_count - 1]
							      : NULL;
	uint64_t low = last ? last->first_row + last->rows : 0;
	uint64_t high = copy->live.head;
	uint64_t fit = size > sizeof(*head) ? (size - sizeof(*head)) / row : 0;

	if (fit > head->rows)
		fit = head->rows;
	if (low < head->first_row)
		low = head->first_row;
	if (high > head->first_row + fit)
		high = head->first_row + fit;
	run->sequence = head->sequence;
	run->first_row = low;
	run->rows = high > low ? high - low : 0;
	run->offset = sizeof(*head) + (low - head->first_row) * row;
}

/* The run keeps the descriptor if another one may stay open; else it is opened for each read. */
static void keep_segment(struct stream_image *copy, struct stream_image_run *run,
			 struct readat *file, size_t *open_files)
{
	const struct readat none = READAT_NONE;
	bool held = file->owned && *open_files;

	run->file = held || !file->owned ? *file : none;
	if (!run->rows || stream_image_add_run(copy, run, file, run->offset))
		return;
	if (held) {
		--*open_files;
		*file = none;
	}
}

static void add_segment(struct stream_image *copy, const struct run_files_item *item,
			size_t *open_files, const struct stream_image_sink *sink)
{
	char path[sizeof(copy->process) + sizeof(item->name) + 2];
	struct stream_image_run run = { .file = READAT_NONE };
	struct readat file = READAT_NONE;
	struct kymo_segment_head head = { 0 };
	struct kymo_error why = { 0 };
	uint64_t kept = copy->kept;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", copy->process, item->name);
	rc = run_files_file(copy->source, path, &file, &why);
	if (rc == -ENOENT)
		return; /* evicted since it was listed */
	if (!rc)
		rc = check_segment(copy, item, &file, &head, &why);
	/* A segment that was being created is empty; segment_next counts the created ones. */
	if (rc && (rc != -ENODATA || item->sequence < copy->live.segment_next))
		stream_image_say(sink, "%s", why.text);
	if (!rc) {
		clip_segment(copy, &file, &head, &run);
		keep_segment(copy, &run, &file, open_files);
	}
	if (copy->kept - kept < run.rows)
		stream_image_say(sink, "%s: %llu rows are left out: they are holes of the file",
				 path, (unsigned long long)(run.rows - (copy->kept - kept)));
	readat_close(&file);
}

/* The list is sorted: the segments of a stream are contiguous. */
static size_t first_segment(const struct run_files_list *files, uint32_t id)
{
	size_t low = 0, high = files->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct run_files_item *item = &files->items[middle];

		if (item->kind < RUN_FILES_SEGMENT ||
		    (item->kind == RUN_FILES_SEGMENT && item->id < id))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void stream_image_segments(struct stream_image *copy, const struct run_files_list *files,
			   size_t *open_files, const struct stream_image_sink *sink)
{
	if (copy->head.cap_rows)
		return;
	for (size_t i = first_segment(files, copy->head.id); i < files->count; i++) {
		const struct run_files_item *item = &files->items[i];

		if (item->kind != RUN_FILES_SEGMENT || item->id != copy->head.id)
			break;
		add_segment(copy, item, open_files, sink);
	}
}
