/* Saves a part of the recording as a file. Rows are interpreted by the columns that their stream
   describes, for any table. */
#include <errno.h>
#include <string.h>

#include <kymo/atomic.h>
#include <kymo/capture.h>

#include "record/record.h"
#include "record/snapshot.h"

#define NOWHERE UINT32_MAX

/* Offsets of the columns of the stream being written. */
struct layout {
	char table[sizeof(((struct kymo_stream_head *)0)->table)];
	uint32_t start, name, device, queue, model, core, kind;
};

struct chooser {
	const struct kymo_capture *capture;
	struct layout layout;
};

static uint32_t offset_of(const struct kymo_stream_head *head, const char *column, size_t bytes)
{
	for (uint32_t i = 0; i < head->column_count; i++) {
		const struct kymo_column_desc *desc = &head->columns[i];

		if (!strncmp(desc->name, column, sizeof(desc->name)) && desc->bytes == bytes &&
		    desc->offset <= head->row_bytes && bytes <= head->row_bytes - desc->offset)
			return desc->offset;
	}
	return NOWHERE;
}

static bool choose_stream(void *context, const struct kymo_stream_head *head)
{
	struct chooser *chooser = context;
	const struct kymo_capture *capture = chooser->capture;
	struct layout *layout = &chooser->layout;

	memcpy(layout->table, head->table, sizeof(layout->table));
	layout->table[sizeof(layout->table) - 1] = '\0';
	layout->start = offset_of(head, "start_ns", 8);
	if (layout->start == NOWHERE)
		layout->start = offset_of(head, "ts_ns", 8);
	layout->name = offset_of(head, "name", 4);
	layout->device = offset_of(head, "device", 4);
	layout->queue = offset_of(head, "queue", 4);
	layout->model = offset_of(head, "model", 4);
	layout->core = offset_of(head, "core", 4);
	layout->kind = offset_of(head, "kind", 2);
	return !capture->wants_table || capture->wants_table(capture->context, layout->table);
}

static uint64_t wide(const void *row, uint32_t offset)
{
	uint64_t value = 0;

	if (offset != NOWHERE)
		memcpy(&value, (const char *)row + offset, sizeof(value));
	return value;
}

static uint32_t capture_narrow(const void *row, uint32_t offset, size_t bytes)
{
	uint32_t value = 0;

	if (offset != NOWHERE)
		memcpy(&value, (const char *)row + offset,
		       bytes); /* little-endian, like the whole format */
	return value;
}

static bool choose_row(void *context, const void *row, bool writes)
{
	const struct chooser *chooser = context;
	const struct kymo_capture *capture = chooser->capture;
	const struct layout *layout = &chooser->layout;
	struct kymo_captured seen = { .table = layout->table,
				      .ticks = wide(row, layout->start),
				      .name = capture_narrow(row, layout->name, 4),
				      .device = capture_narrow(row, layout->device, 4),
				      .queue = capture_narrow(row, layout->queue, 4),
				      .model = capture_narrow(row, layout->model, 4),
				      .kind = capture_narrow(row, layout->kind, 2),
				      .core = (int32_t)capture_narrow(row, layout->core, 4) };

	/* A table without a time column holds definitions, not events. */
	if (layout->start != NOWHERE &&
	    (seen.ticks < capture->from_ticks ||
	     (capture->until_ticks && seen.ticks > capture->until_ticks)))
		return false;
	return !capture->wants_row || capture->wants_row(capture->context, &seen, writes);
}

static bool misses(void *context, const void *oldest_row)
{
	const struct chooser *chooser = context;

	return chooser->layout.start == NOWHERE ||
	       wide(oldest_row, chooser->layout.start) >= chooser->capture->from_ticks;
}

int kymo_capture_write(const char *path, const struct kymo_capture *capture, struct kymo_error *err)
{
	struct chooser chooser = { .capture = capture };
	const struct kymo__choice choice = {
		.stream = choose_stream, .row = choose_row, .misses = misses, .context = &chooser
	};

	if (!capture || capture->bytes < sizeof(*capture))
		return error_set(err, EINVAL, "a capture needs a selection");
	return kymo__snapshot_choose(&choice, path, err);
}

int kymo_keep_rows(const char *table, uint64_t rows)
{
	for (uint32_t i = 1; table && i < KYMO_TABLES_MAX; i++) {
		struct kymo_table *at = &kymo__tables[i];

		if (kymo__load_acquire(&at->state) != 2 || strcmp(at->name, table))
			continue;
		if (rows > kymo__load_relaxed(&at->ring_rows))
			kymo__store_relaxed(&at->ring_rows, rows);
		return 0;
	}
	return -EINVAL;
}
