/* Samples of all streams, merged by time. */
#include "base/grow.h"
#include "tables/stacks/stack_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "tables/scan/decode.h"

#define READ_ROWS 2048u
#define WEIGHT_MOST_NS (2 * 86400u * 1000000000ull) /* the longest period is a day */

enum {
	SAMPLE_TIME,
	SAMPLE_NODE,
	SAMPLE_PID,
	SAMPLE_TID,
	SAMPLE_THREAD,
	SAMPLE_CAUSE,
	SAMPLE_STATE,
	SAMPLE_GIL,
	SAMPLE_WEIGHT,
	SAMPLE_ACTIVITY,
	SAMPLE_WAITS_FOR,
	SAMPLE_FLAGS,
	SAMPLE_HOLDER,
	SAMPLE_COLUMNS
};

static const struct {
	const char *name;
	uint32_t bytes;
} sample_columns[SAMPLE_COLUMNS] = {
	[SAMPLE_TIME] = { "ts_ns", 8 },		 [SAMPLE_NODE] = { "node", 4 },
	[SAMPLE_PID] = { "target_pid", 4 },	 [SAMPLE_TID] = { "target_tid", 4 },
	[SAMPLE_THREAD] = { "thread_name", 4 },	 [SAMPLE_CAUSE] = { "cause", 4 },
	[SAMPLE_STATE] = { "state", 2 },	 [SAMPLE_GIL] = { "gil", 2 },
	[SAMPLE_WEIGHT] = { "weight_ns", 8 },	 [SAMPLE_ACTIVITY] = { "activity", 4 },
	[SAMPLE_WAITS_FOR] = { "waits_for", 4 }, [SAMPLE_FLAGS] = { "flags", 4 },
	[SAMPLE_HOLDER] = { "holder", 4 },
};

/* A stream, read block by block. */
struct run_files {
	const struct store_stream *stream;
	const struct store_process *process;
	uint32_t process_index;
	int32_t at[SAMPLE_COLUMNS];
	size_t chunk;
	uint64_t row; /* the next row of the chunk */
	unsigned char *buffer;
	size_t filled, used;
	struct stack_nodes_sample next; /* valid if has_next */
	bool has_next;
};

struct stack_nodes_cursor {
	struct run_files *sources;
	size_t source_count;
	/* Samples of one moment, sorted before they are returned. */
	struct stack_nodes_sample *moment;
	size_t moment_count, moment_room, moment_used;
};

static uint64_t stack_nodes_cursor_load(const unsigned char *row, int32_t offset, size_t bytes)
{
	uint64_t value = 0;

	if (offset >= 0)
		memcpy(&value, row + offset, bytes);
	return value;
}

/* A damaged weight counts as unknown, since sums of weights must not overflow. */
static int64_t weight_of(const struct run_files *source, uint64_t weight_ns)
{
	return source->at[SAMPLE_WEIGHT] < 0 || weight_ns > WEIGHT_MOST_NS ? -1
									   : (int64_t)weight_ns;
}

static void stack_nodes_cursor_decode(struct run_files *source, const unsigned char *row)
{
	uint64_t value[SAMPLE_COLUMNS];

	for (int i = 0; i < SAMPLE_COLUMNS; i++)
		value[i] = stack_nodes_cursor_load(row, source->at[i], sample_columns[i].bytes);
	source->next = (struct stack_nodes_sample){
		.ts_ns = decode_time_ns(&source->process->clock, value[SAMPLE_TIME]),
		.process = source->process_index,
		.node = (uint32_t)value[SAMPLE_NODE],
		.pid = (int32_t)value[SAMPLE_PID],
		.tid = (int32_t)value[SAMPLE_TID],
		.thread = stack_nodes_name(source->process, (uint32_t)value[SAMPLE_THREAD]),
		.cause = stack_nodes_name(source->process, (uint32_t)value[SAMPLE_CAUSE]),
		.state = (uint16_t)value[SAMPLE_STATE],
		.gil = (uint16_t)value[SAMPLE_GIL],
		.weight_ns = weight_of(source, value[SAMPLE_WEIGHT]),
		.activity = stack_nodes_name(source->process, (uint32_t)value[SAMPLE_ACTIVITY]),
		.waits_for = stack_nodes_name(source->process, (uint32_t)value[SAMPLE_WAITS_FOR]),
		.flags = (uint32_t)value[SAMPLE_FLAGS],
		.holder = (int32_t)value[SAMPLE_HOLDER],
	};
}

static bool refill(struct run_files *source)
{
	const struct store_stream *stream = source->stream;

	source->used = source->filled = 0;
	while (!source->filled && source->chunk < stream->chunk_count) {
		const struct store_chunk *chunk = &stream->chunks[source->chunk];
		uint64_t count = chunk->rows - source->row;

		if (count > READ_ROWS)
			count = READ_ROWS;
		if (count)
			source->filled = (size_t)store_read_rows(stream, chunk, source->row, count,
								 source->buffer);
		source->row += source->filled;
		if (!source->filled || source->row >= chunk->rows) {
			source->chunk++;
			source->row = 0;
		}
	}
	return source->filled != 0;
}

static void advance(struct run_files *source)
{
	source->has_next = source->used < source->filled || refill(source);
	if (source->has_next)
		stack_nodes_cursor_decode(
			source, source->buffer + source->used++ * source->stream->row_bytes);
}

/* ---- by time --------------------------------------------------------------------------------- */

static int compare_samples(const void *a, const void *b)
{
	const struct stack_nodes_sample *one = a, *other = b;

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static struct run_files *earliest(struct stack_nodes_cursor *cursor)
{
	struct run_files *found = NULL;

	for (size_t i = 0; i < cursor->source_count; i++) {
		struct run_files *source = &cursor->sources[i];

		if (source->has_next && (!found || source->next.ts_ns < found->next.ts_ns))
			found = source;
	}
	return found;
}

static bool stack_nodes_cursor_add(struct stack_nodes_cursor *cursor,
				   const struct stack_nodes_sample *sample)
{
	if (!grow((void **)&cursor->moment, &cursor->moment_room, cursor->moment_count,
		  sizeof(*cursor->moment)))
		return false;
	cursor->moment[cursor->moment_count++] = *sample;
	return true;
}

static bool take_moment(struct stack_nodes_cursor *cursor)
{
	struct run_files *source = earliest(cursor);
	int64_t now_ns = source ? source->next.ts_ns : 0;

	cursor->moment_count = cursor->moment_used = 0;
	for (; source && source->next.ts_ns == now_ns; source = earliest(cursor)) {
		if (!stack_nodes_cursor_add(cursor, &source->next))
			break; /* no memory: return the samples unsorted */
		advance(source);
	}
	if (cursor->moment_count)
		qsort(cursor->moment, cursor->moment_count, sizeof(*cursor->moment),
		      compare_samples);
	return cursor->moment_count != 0;
}

bool stack_nodes_cursor_next(struct stack_nodes_cursor *cursor, struct stack_nodes_sample *out)
{
	if (cursor->moment_used == cursor->moment_count && !take_moment(cursor))
		return false;
	*out = cursor->moment[cursor->moment_used++];
	return true;
}

/* ---- open and close -------------------------------------------------------------------------- */

static int64_t row_time_ns(const struct run_files *source, const struct store_chunk *chunk,
			   uint64_t row)
{
	unsigned char bytes[KYMO_ROW_BYTES_MAX];

	if (source->stream->row_bytes > sizeof(bytes) ||
	    store_read_rows(source->stream, chunk, row, 1, bytes) != 1)
		return INT64_MAX;
	return decode_time_ns(&source->process->clock,
			      stack_nodes_cursor_load(bytes, source->at[SAMPLE_TIME], 8));
}

/* Rows of a stream are in the order of their times: the first one that is not before from_ns. */
static void skip_until(struct run_files *source, int64_t from_ns)
{
	const struct store_stream *stream = source->stream;
	const struct store_chunk *chunk;
	uint64_t low = 0, high;

	while (source->chunk < stream->chunk_count &&
	       (!stream->chunks[source->chunk].rows ||
		row_time_ns(source, &stream->chunks[source->chunk],
			    stream->chunks[source->chunk].rows - 1) < from_ns))
		source->chunk++;
	if (source->chunk == stream->chunk_count)
		return;
	chunk = &stream->chunks[source->chunk];
	for (high = chunk->rows; low < high;) {
		uint64_t middle = low + (high - low) / 2;

		if (row_time_ns(source, chunk, middle) < from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	source->row = low;
}

static bool open_source(struct run_files *source, const struct recording *recording,
			const struct store_stream *stream, int64_t from_ns)
{
	source->stream = stream;
	source->process = &recording->processes[stream->process];
	source->process_index = stream->process;
	for (int i = 0; i < SAMPLE_COLUMNS; i++)
		source->at[i] = stack_nodes_offset(stream, sample_columns[i].name,
						   sample_columns[i].bytes);
	source->buffer = malloc((size_t)READ_ROWS * stream->row_bytes);
	if (source->buffer && from_ns != INT64_MIN && source->at[SAMPLE_TIME] >= 0)
		skip_until(source, from_ns);
	if (source->buffer)
		advance(source);
	return source->buffer != NULL;
}

struct stack_nodes_cursor *stack_nodes_cursor_open(struct tables *tables,
						   enum stack_nodes_kind kind, int64_t from_ns)
{
	const char *table = kind == STACK_NODES_NATIVE ? "native.samples" : "python.samples";
	const struct recording *recording = tables->recording;
	struct stack_nodes_cursor *cursor = calloc(1, sizeof(*cursor));
	bool ok = cursor != NULL;

	if (ok)
		cursor->sources = calloc(recording->stream_count + 1, sizeof(*cursor->sources));
	ok = ok && cursor->sources;
	for (size_t i = 0; ok && i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (!strcmp(stream->table, table) && stream->row_bytes)
			ok = open_source(&cursor->sources[cursor->source_count++], recording,
					 stream, from_ns);
	}
	if (!ok) {
		stack_nodes_cursor_close(cursor);
		return NULL;
	}
	return cursor;
}

void stack_nodes_cursor_close(struct stack_nodes_cursor *cursor)
{
	if (!cursor)
		return;
	for (size_t i = 0; i < cursor->source_count; i++)
		free(cursor->sources[i].buffer);
	free(cursor->sources);
	free(cursor->moment);
	free(cursor);
}
