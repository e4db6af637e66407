#include "tables/critical/critical_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tables/scan/decode.h"

#define READ_ROWS 1024u

struct offsets {
	int32_t at[CRITICAL_COLUMNS_MOST];
	uint32_t bytes[CRITICAL_COLUMNS_MOST];
};

static void critical_find_columns(const struct store_stream *stream,
				  const struct critical_reader *reader, struct offsets *out)
{
	for (int k = 0; k < CRITICAL_COLUMNS_MOST; k++) {
		out->at[k] = -1;
		for (uint32_t i = 0; reader->columns[k] && i < stream->column_count; i++) {
			const struct store_column *column = &stream->columns[i];

			if (strcmp(column->name, reader->columns[k]) || column->bytes > 8 ||
			    column->offset > stream->row_bytes ||
			    column->bytes > stream->row_bytes - column->offset)
				continue;
			out->at[k] = (int32_t)column->offset;
			out->bytes[k] = column->bytes;
		}
	}
}

static bool take_rows(const struct critical_reader *reader, const struct offsets *offsets,
		      struct critical_row *row, const unsigned char *bytes, uint64_t count,
		      size_t row_bytes)
{
	for (uint64_t i = 0; i < count; i++, bytes += row_bytes) {
		for (int k = 0; k < CRITICAL_COLUMNS_MOST; k++) {
			row->value[k] = 0;
			if (offsets->at[k] >= 0)
				memcpy(&row->value[k], bytes + offsets->at[k], offsets->bytes[k]);
		}
		if (!reader->take(row))
			return false;
	}
	return true;
}

static bool critical_take_stream(const struct critical_reader *reader,
				 const struct store_stream *stream, struct critical_row *row,
				 unsigned char *buffer)
{
	struct offsets offsets;
	bool ok = true;

	critical_find_columns(stream, reader, &offsets);
	for (size_t c = 0; ok && c < stream->chunk_count; c++) {
		const struct store_chunk *chunk = &stream->chunks[c];
		uint64_t from = 0, count;

		for (; ok && from < chunk->rows; from += count) {
			count = chunk->rows - from < READ_ROWS ? chunk->rows - from : READ_ROWS;
			count = store_read_rows(stream, chunk, from, count, buffer);
			if (!count)
				break; /* the file was truncated */
			ok = take_rows(reader, &offsets, row, buffer, count, stream->row_bytes);
		}
	}
	return ok;
}

bool critical_read_table(struct critical_input *input, const struct critical_reader *reader,
			 bool *too_large)
{
	const struct recording *recording = input->recording;
	unsigned char *buffer = malloc((size_t)READ_ROWS * KYMO_ROW_BYTES_MAX);
	bool ok = buffer != NULL;

	for (size_t i = 0; ok && i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		struct critical_row row = { .input = input, .process_index = stream->process };

		if (strcmp(stream->table, reader->table) ||
		    stream->process >= recording->process_count || !stream->row_bytes ||
		    stream->row_bytes > KYMO_ROW_BYTES_MAX)
			continue;
		row.process = &recording->processes[stream->process];
		ok = critical_take_stream(reader, stream, &row, buffer);
		*too_large |= row.too_large;
	}
	free(buffer);
	return ok;
}

/* ---- names, threads, queues ---------------------------------------------------------------- */

int64_t critical_time_of(const struct critical_row *row, int column)
{
	return decode_time_ns(&row->process->clock, row->value[column]);
}

bool critical_is_span(int64_t from_ns, int64_t to_ns)
{
	const int64_t most = INT64_MAX / 8;

	return from_ns > -most && to_ns < most && from_ns <= to_ns;
}

int64_t critical_end_after(const struct critical_row *row, int64_t start_ns, int column)
{
	int64_t end_ns;

	return __builtin_add_overflow(
		       start_ns, decode_span_ns(&row->process->clock, row->value[column]), &end_ns)
		       ? INT64_MAX
		       : end_ns;
}

uint32_t critical_name_of(const struct critical_row *row, int column)
{
	const uint64_t local = row->value[column];

	return local < row->process->name_count ? row->process->name_of[local] : 0;
}

static uint32_t critical_add_thread(struct critical_input *input, uint32_t process, int32_t tid)
{
	for (size_t i = input->threads.count; i-- > 0;)
		if (input->threads.list[i].process == process && input->threads.list[i].tid == tid)
			return (uint32_t)i;
	if (!grow((void **)&input->threads.list, &input->threads.room, input->threads.count,
		  sizeof(*input->threads.list)))
		return CRITICAL_NONE;
	input->threads.list[input->threads.count] = (struct critical_thread){ .process = process,
									      .tid = tid };
	return (uint32_t)input->threads.count++;
}

uint32_t critical_thread_of(const struct critical_row *row, int column, bool drives)
{
	struct critical_input *input = row->input;
	const uint64_t local = row->value[column];
	uint32_t global = local < row->process->thread_count ? row->process->thread_of[local] : 0;
	const struct store_thread *thread;
	uint32_t *found;

	if (!global || global >= input->recording->thread_count)
		return CRITICAL_NONE;
	thread = &input->recording->threads[global];
	found = &input->thread_of[global];
	if (*found == CRITICAL_NONE)
		*found = critical_add_thread(input, row->process_index, thread->tid);
	if (*found != CRITICAL_NONE)
		input->threads.list[*found].drives |= drives;
	return *found;
}

static uint32_t find_queue(const struct critical_input *input, uint32_t process, uint32_t device,
			   uint32_t name)
{
	for (size_t i = input->queues.count; i-- > 0;) {
		const struct critical_queue *queue = &input->queues.list[i];

		if (queue->process == process && queue->name == name && queue->device == device)
			return (uint32_t)i;
	}
	return CRITICAL_NONE;
}

uint32_t critical_queue_of(const struct critical_row *row, uint32_t device, uint32_t name)
{
	struct critical_input *input = row->input;
	uint32_t found = find_queue(input, row->process_index, device, name);

	if (found != CRITICAL_NONE)
		return found;
	if (!grow((void **)&input->queues.list, &input->queues.room, input->queues.count,
		  sizeof(*input->queues.list)))
		return CRITICAL_NONE;
	input->queues.list[input->queues.count] = (struct critical_queue){ row->process_index,
									   device, name };
	return (uint32_t)input->queues.count++;
}
