/*
 * The columns of each table over all streams of all processes. Two processes may declare a table
 * differently: columns are joined by name, what a stream lacks is NULL, and where two types clash
 * the first stands (kymo's own schema before all) and a sentence says so.
 */
#ifndef KYMO_TABLES_SHAPE_H
#define KYMO_TABLES_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/store.h"

/* What a column of SQL is made of. Each has a row in scan.c: its SQL type and its decoder. */
enum shape_kind {
	SHAPE_I32,
	SHAPE_I64,
	SHAPE_U16,
	SHAPE_U32,
	SHAPE_U64,
	SHAPE_F32,
	SHAPE_F64,
	SHAPE_BOOL,
	SHAPE_TEXT,
	SHAPE_TIME,
	SHAPE_DURATION,
	SHAPE_NAME,
	SHAPE_NAME_ID,
	SHAPE_NAME_SOURCE,
	SHAPE_NAME_FILE,
	SHAPE_NAME_LINE,
	SHAPE_NAME_INSTANCE,
	SHAPE_THREAD,
	SHAPE_THREAD_TID,
	SHAPE_THREAD_ID,
	SHAPE_PID,
	SHAPE_RANK,
	SHAPE_STREAM,
	SHAPE_KIND_COUNT
};

struct shape_column {
	char name[48]; /* unique in its table, whatever the case of its letters */
	enum shape_kind kind;
	int32_t declared; /* index of the declared column; -1: of the stream as a whole */
};

struct shape_stream {
	const struct store_stream *stream;
	const struct store_process *process;
	uint32_t process_index;
	int32_t *column_of; /* declared column -> column of the stream; -1: it has none */
};

struct shape {
	char table[64];
	struct store_column *declared;
	size_t declared_count;
	struct shape_column *columns; /* the declared ones and what follows from them */
	size_t column_count;
	struct shape_stream *streams;
	size_t stream_count;
	uint64_t rows;
};

struct shape_set {
	struct shape *shapes; /* kymo's own tables first, with or without streams */
	size_t count;
	struct buf problems; /* sentences, each ended by a newline */
};

/* 0 or -ENOMEM. The recording must outlive the set. */
int shape_set_init(struct shape_set *set, const struct recording *recording);
void shape_set_fini(struct shape_set *set);
/* NULL where the recording has no such table. */
const struct shape *shape_find(const struct shape_set *set, const char *table);
/* The index of a column by its name, or -1. */
int32_t shape_column_find(const struct shape *shape, const char *name);

#endif
