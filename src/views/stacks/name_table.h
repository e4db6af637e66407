/*
 * Names with their source, file and line. Equal ones have one number; numbers count from 0 in order
 * of appearance. For zones of a timeline, frames of stacks, and exporters.
 */
#ifndef KYMO_VIEWS_STACKS_NAME_TABLE_H
#define KYMO_VIEWS_STACKS_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"

struct name_entry {
	const char *name, *source, *file; /* end with NUL in a table, may contain more; "": none */
	uint32_t name_bytes, source_bytes, file_bytes;
	int32_t line; /* 0: none */
};

struct name_table {
	struct name_entry *list;
	size_t count, room;
	size_t most; /* 0: no limit; otherwise the last one stands for all further names */
	struct intern index;
};

#define NAME_TABLE_NONE UINT32_MAX

/* The number of a name, which is copied when it is new. NAME_TABLE_NONE: out of memory. */
uint32_t name_table_add(struct name_table *table, const struct name_entry *name);
/* Columns of JSON: names [from, from + count), or the `count` ones listed in `which`. */
void name_table_json(const struct name_table *table, const uint32_t *which, size_t from,
		     size_t count, struct buf *out);
void name_table_fini(struct name_table *table);

#endif
