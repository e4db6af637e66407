#include "tables/table_shape.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/schema.h"

#define DECLARED_MAX \
	128u /* distinct columns of one table over all processes; more are left out and reported */

/* The SQL columns of a stream's type; the first is the column itself, the others get a suffix. */
struct expansion {
	enum table_shape_kind kind;
	const char *suffix; /* NULL: no more */
};

#define EXPANSION_MAX 6
static const struct expansion expansions[][EXPANSION_MAX + 1] = {
	[KYMO_I32] = { { TABLE_SHAPE_I32, "" } },
	[KYMO_I64] = { { TABLE_SHAPE_I64, "" } },
	[KYMO_U32] = { { TABLE_SHAPE_U32, "" } },
	[KYMO_U64] = { { TABLE_SHAPE_U64, "" } },
	[KYMO_F32] = { { TABLE_SHAPE_F32, "" } },
	[KYMO_F64] = { { TABLE_SHAPE_F64, "" } },
	[KYMO_BOOL] = { { TABLE_SHAPE_BOOL, "" } },
	[KYMO_U16] = { { TABLE_SHAPE_U16, "" } },
	[KYMO_TEXT] = { { TABLE_SHAPE_TEXT, "" } },
	[KYMO_NAME] = { { TABLE_SHAPE_NAME, "" },
			{ TABLE_SHAPE_NAME_ID, "_id" },
			{ TABLE_SHAPE_NAME_SOURCE, "_source" },
			{ TABLE_SHAPE_NAME_FILE, "_file" },
			{ TABLE_SHAPE_NAME_LINE, "_line" },
			{ TABLE_SHAPE_NAME_INSTANCE, "_instance" } },
	[KYMO_TIME] = { { TABLE_SHAPE_TIME, "" } },
	[KYMO_DURATION] = { { TABLE_SHAPE_DURATION, "" } },
	[KYMO_THREAD] = { { TABLE_SHAPE_THREAD, "" },
			  { TABLE_SHAPE_THREAD_TID, "_tid" },
			  { TABLE_SHAPE_THREAD_ID, "_id" } },
};

static bool known_type(uint32_t type)
{
	return type < sizeof(expansions) / sizeof(expansions[0]) && expansions[type][0].suffix;
}

/* A header may hold any bytes; shown and quoted names are printable ASCII. */
static void copy_word(char *out, size_t out_bytes, const char *in, size_t in_bytes)
{
	size_t at = 0;

	for (; at + 1 < out_bytes && at < in_bytes && in[at]; at++)
		out[at] = in[at] >= ' ' && in[at] < 127 ? in[at] : '_';
	out[at] = 0;
}

static bool table_shape_fits(const struct store_column *column, uint32_t row_bytes)
{
	size_t bytes = column->type == KYMO_TEXT ? column->bytes : schema_type_bytes(column->type);

	return known_type(column->type) && bytes && row_bytes <= KYMO_ROW_BYTES_MAX &&
	       column->offset <= row_bytes && bytes <= row_bytes - column->offset;
}

static int32_t find_declared(const struct table_shape *shape, const char *name)
{
	for (size_t i = 0; i < shape->declared_count; i++)
		if (!strcasecmp(shape->declared[i].name, name))
			return (int32_t)i;
	return -1;
}

static int32_t declare(struct table_shape *shape, const char *name, uint32_t type)
{
	struct store_column *column;

	if (shape->declared_count == DECLARED_MAX)
		return -1;
	column = &shape->declared[shape->declared_count];
	memset(column, 0, sizeof(*column));
	copy_word(column->name, sizeof(column->name), name, sizeof(column->name));
	column->type = type;
	return (int32_t)shape->declared_count++;
}

/* The declared column of a stream's column, created if there is none; -1 if it is left out. */
static int32_t place_column(struct table_shape *shape, const struct store_stream *stream,
			    uint32_t index, const int32_t *column_of, struct buf *problems)
{
	const struct store_column *column = &stream->columns[index];
	char name[sizeof(column->name)];
	int32_t at;

	copy_word(name, sizeof(name), column->name, sizeof(column->name));
	if (!name[0] || !table_shape_fits(column, stream->row_bytes)) {
		buf_print(problems,
			  "%s: column \"%s\" of stream %u has an unknown type and is left out\n",
			  shape->table, name, stream->id);
		return -1;
	}
	at = find_declared(shape, name);
	if (at < 0)
		at = declare(shape, name, column->type);
	if (at < 0 || shape->declared[at].type != column->type || column_of[at] >= 0) {
		buf_print(problems, "%s: column \"%s\" of stream %u %s; its values are NULL\n",
			  shape->table, name, stream->id,
			  at < 0	       ? "is one too many"
			  : column_of[at] >= 0 ? "is there twice"
					       : "has another type than elsewhere");
		return -1;
	}
	return at;
}

static int table_shape_add_stream(struct table_shape *shape, const struct recording *recording,
				  const struct store_stream *stream, struct buf *problems)
{
	struct table_shape_stream *added = &shape->streams[shape->stream_count];
	int32_t at;

	if (!stream->row_bytes || stream->row_bytes > KYMO_ROW_BYTES_MAX) {
		buf_print(problems, "%s: stream %u has rows of %u bytes and is left out\n",
			  shape->table, stream->id, stream->row_bytes);
		return 0;
	}
	added->column_of = malloc(DECLARED_MAX * sizeof(added->column_of[0]));
	if (!added->column_of)
		return -ENOMEM;
	memset(added->column_of, 0xff, DECLARED_MAX * sizeof(added->column_of[0]));
	added->stream = stream;
	added->process_index = stream->process;
	added->process = &recording->processes[stream->process];
	shape->stream_count++;
	shape->rows += stream->kept;
	for (uint32_t i = 0; i < stream->column_count && i < KYMO_COLUMNS_MAX; i++) {
		at = place_column(shape, stream, i, added->column_of, problems);
		if (at >= 0)
			added->column_of[at] = (int32_t)i;
	}
	return 0;
}

int32_t table_shape_column_find(const struct table_shape *shape, const char *name)
{
	for (size_t i = 0; i < shape->column_count; i++)
		if (!strcasecmp(shape->columns[i].name, name))
			return (int32_t)i;
	return -1;
}

/* A declared column takes precedence over a derived one of the same name. */
static void add_derived(struct table_shape *shape, const char *name, enum table_shape_kind kind,
			int32_t declared)
{
	struct table_shape_column *column = &shape->columns[shape->column_count];

	if (find_declared(shape, name) >= 0 || table_shape_column_find(shape, name) >= 0)
		return;
	snprintf(column->name, sizeof(column->name), "%s", name);
	column->kind = kind;
	column->declared = declared;
	shape->column_count++;
}

static void expand_column(struct table_shape *shape, int32_t declared)
{
	const struct store_column *column = &shape->declared[declared];
	const struct expansion *expansion = expansions[column->type];
	char name[48];

	for (size_t i = 1; expansion[i].suffix; i++) {
		/* The kernel ID of the first thread column is named tid. */
		if (expansion[i].kind == TABLE_SHAPE_THREAD_TID)
			add_derived(shape, "tid", expansion[i].kind, declared);
		snprintf(name, sizeof(name), "%s%s", column->name, expansion[i].suffix);
		add_derived(shape, name, expansion[i].kind, declared);
	}
}

static int expand(struct table_shape *shape)
{
	size_t room = shape->declared_count * (EXPANSION_MAX + 1) + 6;
	int32_t target = find_declared(shape, "target_pid");

	shape->columns = calloc(room, sizeof(shape->columns[0]));
	if (!shape->columns)
		return -ENOMEM;
	for (size_t i = 0; i < shape->declared_count; i++) {
		struct table_shape_column *column = &shape->columns[shape->column_count++];

		snprintf(column->name, sizeof(column->name), "%s", shape->declared[i].name);
		column->kind = expansions[shape->declared[i].type][0].kind;
		column->declared = (int32_t)i;
	}
	for (size_t i = 0; i < shape->declared_count; i++)
		expand_column(shape, (int32_t)i);
	add_derived(shape, "pid", TABLE_SHAPE_PID, -1);
	add_derived(shape, "rank", TABLE_SHAPE_RANK, -1);
	add_derived(shape, "stream", TABLE_SHAPE_STREAM, -1);
	add_derived(shape, "host", TABLE_SHAPE_HOST, -1);
	add_derived(shape, "process_id", TABLE_SHAPE_PROCESS_ID, -1);
	if (target >= 0 && shape->declared[target].type == KYMO_I32)
		add_derived(shape, "target_rank", TABLE_SHAPE_TARGET_RANK, target);
	return 0;
}

/* Whether the stream's table has this name, as it is shown. */
static bool is_of(const struct store_stream *stream, const char *table,
		  const struct recording *recording)
{
	char name[sizeof(stream->table)];

	if (stream->without_file || stream->process >= recording->process_count)
		return false;
	copy_word(name, sizeof(name), stream->table, sizeof(stream->table));
	return !strcmp(name, table);
}

static size_t count_streams(const struct recording *recording, const char *table)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		count += is_of(&recording->streams[i], table, recording);
	return count;
}

static int shape_init(struct table_shape *shape, const char *table, const struct schema_table *own,
		      const struct recording *recording, struct buf *problems)
{
	int rc = 0;

	snprintf(shape->table, sizeof(shape->table), "%s", table);
	shape->declared = calloc(DECLARED_MAX, sizeof(shape->declared[0]));
	shape->streams = calloc(count_streams(recording, table) + 1, sizeof(shape->streams[0]));
	if (!shape->declared || !shape->streams)
		return -ENOMEM;
	for (size_t i = 0; own && i < own->column_count; i++)
		declare(shape, own->columns[i].name, own->columns[i].type);
	for (size_t i = 0; i < recording->stream_count && !rc; i++)
		if (is_of(&recording->streams[i], table, recording))
			rc = table_shape_add_stream(shape, recording, &recording->streams[i],
						    problems);
	return rc ? rc : expand(shape);
}

static int add_shape(struct table_shape_set *set, const char *table, const struct schema_table *own,
		     const struct recording *recording)
{
	/* Counted before it is initialised, so that fini frees a partial one. */
	return shape_init(&set->shapes[set->count++], table, own, recording, &set->problems);
}

int table_shape_set_init(struct table_shape_set *set, const struct recording *recording)
{
	const struct schema_table *own;
	char table[64];
	int rc = 0;

	memset(set, 0, sizeof(*set));
	set->shapes = calloc(SCHEMA_COUNT + recording->stream_count, sizeof(set->shapes[0]));
	if (!set->shapes)
		return -ENOMEM;
	for (int id = 1; id < SCHEMA_COUNT && !rc; id++) {
		own = schema_get((enum schema_id)id);
		if (own)
			rc = add_shape(set, own->name, own, recording);
	}
	for (size_t i = 0; i < recording->stream_count && !rc; i++) {
		copy_word(table, sizeof(table), recording->streams[i].table, sizeof(table));
		if (table[0] && !recording->streams[i].without_file &&
		    !table_shape_find(set, table))
			rc = add_shape(set, table, NULL, recording);
	}
	return rc;
}

void table_shape_set_fini(struct table_shape_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->shapes[i].stream_count; k++)
			free(set->shapes[i].streams[k].column_of);
		free(set->shapes[i].streams);
		free(set->shapes[i].declared);
		free(set->shapes[i].columns);
	}
	free(set->shapes);
	buf_fini(&set->problems);
	memset(set, 0, sizeof(*set));
}

const struct table_shape *table_shape_find(const struct table_shape_set *set, const char *table)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->shapes[i].table, table))
			return &set->shapes[i];
	return NULL;
}
