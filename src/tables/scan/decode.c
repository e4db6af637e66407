#include "tables/scan/decode.h"

#include <string.h>

#include "base/utf8.h"
#include "tables/scan/dictionary.h"
#include "tables/words.h"

/* A column of a block: its first value and the distance to the next. */
struct run_files {
	const struct decode_block *block;
	const unsigned char *first;
	size_t step;
	size_t count;
	size_t bytes; /* of a text column */
	const struct store_clock *clock;
};

/* The layout comes from a file header, so values may be unaligned. */
#define LOAD(type, at) \
	({ \
		type loaded; \
		memcpy(&loaded, (at), sizeof(loaded)); \
		loaded; \
	})

#define DECODER(name, from, to, expression) \
	static void name(const struct run_files *source, duckdb_vector out, void *data) \
	{ \
		const struct store_clock *clock = source->clock; \
		const unsigned char *at = source->first; \
		to *restrict values = data; \
\
		(void)out; \
		(void)clock; \
		for (size_t i = 0; i < source->count; i++, at += source->step) { \
			from value = LOAD(from, at); \
\
			values[i] = (expression); \
		} \
	}

DECODER(decode_i32, int32_t, int32_t, value)
DECODER(decode_i64, int64_t, int64_t, value)
/* Unsigned numbers become wider signed ones, so that the difference of two never overflows. */
DECODER(decode_u16, uint16_t, int32_t, value)
DECODER(decode_u32, uint32_t, int64_t, value)
DECODER(decode_u64, uint64_t, uint64_t, value)
DECODER(decode_f32, float, float, value)
DECODER(decode_f64, double, double, value)
DECODER(decode_bool, uint8_t, bool, value != 0)
DECODER(decode_time, uint64_t, int64_t, decode_time_ns(clock, value))
DECODER(decode_duration, uint64_t, int64_t, decode_span_ns(clock, value))

static void decode_text(const struct run_files *source, duckdb_vector out, void *data)
{
	const unsigned char *at = source->first;
	char whole[WORDS_REPAIRED_BYTES(KYMO_ROW_BYTES_MAX)];
	size_t bytes;

	(void)data;
	for (size_t i = 0; i < source->count; i++, at += source->step) {
		bytes = strnlen((const char *)at, source->bytes);
		if (words_valid((const char *)at, bytes)) {
			duck.vector_assign_string_element_len(out, i, (const char *)at, bytes);
			continue;
		}
		bytes = utf8_repair((const char *)at, bytes, whole, sizeof(whole));
		duck.vector_assign_string_element_len(out, i, whole, bytes);
	}
}

static uint32_t global_name(const struct store_process *process, uint32_t name)
{
	return name < process->name_count ? process->name_of[name] : 0;
}

/* An unknown thread becomes the "not known" thread of its process. */
static uint32_t global_thread(const struct decode_block *block, uint32_t thread)
{
	const struct store_process *process = block->stream->process;
	uint32_t at = thread < process->thread_count ? process->thread_of[thread] : 0;

	return at ? at
		  : (uint32_t)block->tables->recording->thread_count + block->stream->process_index;
}

static void decode_name_id(const struct run_files *source, duckdb_vector out, void *data)
{
	const unsigned char *at = source->first;
	int32_t *ids = data;

	(void)out;
	for (size_t i = 0; i < source->count; i++, at += source->step)
		ids[i] = (int32_t)global_name(source->block->stream->process, LOAD(uint32_t, at));
}

static void decode_thread_id(const struct run_files *source, duckdb_vector out, void *data)
{
	const unsigned char *at = source->first;
	int32_t *ids = data;

	(void)out;
	for (size_t i = 0; i < source->count; i++, at += source->step)
		ids[i] = (int32_t)global_thread(source->block, LOAD(uint32_t, at));
}

static void decode_target_rank(const struct run_files *source, duckdb_vector out, void *data)
{
	const struct recording *recording = source->block->tables->recording;
	const unsigned char *at = source->first;
	int32_t *ranks = data;

	for (size_t i = 0; i < source->count; i++, at += source->step) {
		ranks[i] = store_target_rank(recording, source->block->stream->process_index,
					     LOAD(int32_t, at));
		if (ranks[i] >= 0)
			continue;
		duck.vector_ensure_validity_writable(out);
		duck.vector_get_validity(out)[i / 64] &= ~(1ull << (i % 64));
	}
}

static const struct {
	duckdb_type type;
	void (*decode)(const struct run_files *source, duckdb_vector out,
		       void *data); /* NULL for a dictionary, or for one value in all rows */
	int dictionary; /* enum session_dictionary + 1; 0: none */
	bool of_thread; /* of a dictionary: indexed by threads, not names */
} kinds[TABLE_SHAPE_KIND_COUNT] = {
#define TEXT DUCKDB_TYPE_VARCHAR
#define INT DUCKDB_TYPE_INTEGER
#define LONG DUCKDB_TYPE_BIGINT
	[TABLE_SHAPE_I32] = { INT, decode_i32, 0, false },
	[TABLE_SHAPE_I64] = { LONG, decode_i64, 0, false },
	[TABLE_SHAPE_U16] = { INT, decode_u16, 0, false },
	[TABLE_SHAPE_U32] = { LONG, decode_u32, 0, false },
	[TABLE_SHAPE_U64] = { DUCKDB_TYPE_UBIGINT, decode_u64, 0, false },
	[TABLE_SHAPE_F32] = { DUCKDB_TYPE_FLOAT, decode_f32, 0, false },
	[TABLE_SHAPE_F64] = { DUCKDB_TYPE_DOUBLE, decode_f64, 0, false },
	[TABLE_SHAPE_BOOL] = { DUCKDB_TYPE_BOOLEAN, decode_bool, 0, false },
	[TABLE_SHAPE_TEXT] = { TEXT, decode_text, 0, false },
	[TABLE_SHAPE_TIME] = { LONG, decode_time, 0, false },
	[TABLE_SHAPE_DURATION] = { LONG, decode_duration, 0, false },
	[TABLE_SHAPE_NAME] = { TEXT, NULL, SESSION_NAME_TEXT + 1, false },
	[TABLE_SHAPE_NAME_ID] = { INT, decode_name_id, 0, false },
	[TABLE_SHAPE_NAME_SOURCE] = { TEXT, NULL, SESSION_NAME_SOURCE + 1, false },
	[TABLE_SHAPE_NAME_FILE] = { TEXT, NULL, SESSION_NAME_FILE + 1, false },
	[TABLE_SHAPE_NAME_LINE] = { INT, NULL, SESSION_NAME_LINE + 1, false },
	[TABLE_SHAPE_NAME_INSTANCE] = { INT, NULL, SESSION_NAME_INSTANCE + 1, false },
	[TABLE_SHAPE_THREAD] = { TEXT, NULL, SESSION_THREAD_NAME + 1, true },
	[TABLE_SHAPE_THREAD_TID] = { INT, NULL, SESSION_THREAD_TID + 1, true },
	[TABLE_SHAPE_THREAD_ID] = { INT, decode_thread_id, 0, false },
	[TABLE_SHAPE_PID] = { INT, NULL, 0, false },
	[TABLE_SHAPE_RANK] = { INT, NULL, 0, false },
	[TABLE_SHAPE_STREAM] = { INT, NULL, 0, false },
	[TABLE_SHAPE_HOST] = { TEXT, NULL, 0, false },
	[TABLE_SHAPE_PROCESS_ID] = { INT, NULL, 0, false },
	[TABLE_SHAPE_TARGET_RANK] = { INT, decode_target_rank, 0, false },
#undef TEXT
#undef INT
#undef LONG
};

duckdb_type decode_type(enum table_shape_kind kind)
{
	return kinds[kind].type;
}

int decode_dictionary(enum table_shape_kind kind)
{
	return kinds[kind].dictionary - 1;
}

static void all_null(struct decode_block *block, duckdb_vector out)
{
	duck.vector_ensure_validity_writable(out);
	memset(duck.vector_get_validity(out), 0, (block->count + 63) / 64 * 8);
}

/* One value for all rows: a constant vector. */
static void decode_constant(struct decode_block *block, enum table_shape_kind kind,
			    duckdb_vector out)
{
	const struct store_process *process = block->stream->process;
	int32_t number = kind == TABLE_SHAPE_PID	  ? process->pid
			 : kind == TABLE_SHAPE_RANK	  ? process->rank
			 : kind == TABLE_SHAPE_PROCESS_ID ? (int32_t)block->stream->process_index
							  : (int32_t)block->stream->stream->id;
	duckdb_value value;

	if (kind == TABLE_SHAPE_RANK && number < 0) {
		all_null(block, out);
		return;
	}
	value = kind == TABLE_SHAPE_HOST ? duck.create_varchar(process->host)
					 : duck.create_int32(number);
	duck.vector_reference_value(out, value);
	duck.destroy_value(&value);
}

/* New for each block: vectors that were passed on keep using theirs. */
static duckdb_selection_vector select_entries(const struct run_files *source, bool of_thread)
{
	duckdb_selection_vector selection = duck.create_selection_vector(source->count);
	const struct store_process *process = source->block->stream->process;
	const unsigned char *at = source->first;
	sel_t *to = duck.selection_vector_get_data_ptr(selection);

	if (of_thread)
		for (size_t i = 0; i < source->count; i++, at += source->step)
			to[i] = global_thread(source->block, LOAD(uint32_t, at));
	else
		for (size_t i = 0; i < source->count; i++, at += source->step)
			to[i] = global_name(process, LOAD(uint32_t, at));
	return selection;
}

static void decode_by_dictionary(struct decode_block *block, const struct run_files *source,
				 const struct table_shape_column *column, duckdb_vector out)
{
	duckdb_selection_vector *selection = &block->selections[column->declared];
	duckdb_vector dictionary;

	dictionary = dictionary_get(block->tables,
				    (enum session_dictionary)decode_dictionary(column->kind));
	if (!dictionary) {
		all_null(block, out);
		return;
	}
	if (!*selection)
		*selection = select_entries(source, kinds[column->kind].of_thread);
	duck.vector_reference_vector(out, dictionary);
	duck.slice_vector(out, *selection, block->count);
}

void decode_column(struct decode_block *block, const struct table_shape_column *column,
		   duckdb_vector out)
{
	struct run_files source = { block, block->rows, block->row_bytes, block->count, 0, NULL };
	int32_t at;

	if (column->declared < 0) {
		decode_constant(block, column->kind, out);
		return;
	}
	at = block->stream->column_of[column->declared];
	if (at < 0) {
		all_null(block, out);
		return;
	}
	source.first += block->stream->stream->columns[at].offset;
	source.bytes = block->stream->stream->columns[at].bytes;
	source.clock = &block->stream->process->clock;
	if (kinds[column->kind].decode)
		kinds[column->kind].decode(&source, out, duck.vector_get_data(out));
	else
		decode_by_dictionary(block, &source, column, out);
}

void decode_end(struct decode_block *block)
{
	for (size_t i = 0; i < block->shape->declared_count; i++) {
		if (block->selections[i])
			duck.destroy_selection_vector(block->selections[i]);
		block->selections[i] = NULL;
	}
}
