/* The columns of each table over all streams of all processes. Two processes may declare a table
   differently: columns are joined by name, and one that a stream lacks is NULL. If two types
   differ, the first is used (kymo's own schema before all others) and a problem is reported. */
#ifndef KYMO_TABLES_TABLE_SHAPE_H
#define KYMO_TABLES_TABLE_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/store.h"

/* Kinds of SQL columns. Each has a row in decode.c with its SQL type and its decoder. */
enum table_shape_kind {
	TABLE_SHAPE_I32,
	TABLE_SHAPE_I64,
	TABLE_SHAPE_U16,
	TABLE_SHAPE_U32,
	TABLE_SHAPE_U64,
	TABLE_SHAPE_F32,
	TABLE_SHAPE_F64,
	TABLE_SHAPE_BOOL,
	TABLE_SHAPE_TEXT,
	TABLE_SHAPE_TIME,
	TABLE_SHAPE_DURATION,
	TABLE_SHAPE_NAME,
	TABLE_SHAPE_NAME_ID,
	TABLE_SHAPE_NAME_SOURCE,
	TABLE_SHAPE_NAME_FILE,
	TABLE_SHAPE_NAME_LINE,
	TABLE_SHAPE_NAME_INSTANCE,
	TABLE_SHAPE_THREAD,
	TABLE_SHAPE_THREAD_TID,
	TABLE_SHAPE_THREAD_ID,
	TABLE_SHAPE_PID,
	TABLE_SHAPE_RANK,
	TABLE_SHAPE_STREAM,
	TABLE_SHAPE_HOST,
	TABLE_SHAPE_PROCESS_ID, /* index of the recording's processes: unlike a pid it is unique */
	TABLE_SHAPE_TARGET_RANK, /* of the process that a row of a collector is about */
	TABLE_SHAPE_KIND_COUNT
};

struct table_shape_column {
	char name[48]; /* unique in its table, ignoring case */
	enum table_shape_kind kind;
	int32_t declared; /* index of the declared column; -1 for a property of the whole stream */
};

struct table_shape_stream {
	const struct store_stream *stream;
	const struct store_process *process;
	uint32_t process_index;
	int32_t *column_of; /* declared column -> column of the stream; -1 if it has none */
};

struct table_shape {
	char table[64];
	struct store_column *declared;
	size_t declared_count;
	struct table_shape_column *columns; /* declared and derived columns */
	size_t column_count;
	struct table_shape_stream *streams;
	size_t stream_count;
	uint64_t rows;
};

struct table_shape_set {
	struct table_shape *shapes; /* kymo's own tables first, with or without streams */
	size_t count;
	struct buf problems; /* sentences, each with a newline */
};

/* 0 or -ENOMEM. The recording must outlive the set. */
int table_shape_set_init(struct table_shape_set *set, const struct recording *recording);
void table_shape_set_fini(struct table_shape_set *set);
/* NULL if the recording has no such table. */
const struct table_shape *table_shape_find(const struct table_shape_set *set, const char *table);
/* The index of a column by its name, or -1. */
int32_t table_shape_column_find(const struct table_shape *shape, const char *name);

#endif
