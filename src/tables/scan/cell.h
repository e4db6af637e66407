/* From a vector of DuckDB to what tables_cell() gives: numbers, text, and JSON for what is
   nested. */
#ifndef KYMO_TABLES_SCAN_CELL_H
#define KYMO_TABLES_SCAN_CELL_H

#include "base/buf.h"
#include "tables/session.h"

struct cell_column {
	const char *name; /* DuckDB's, as long as the result */
	char *type_name;
	duckdb_logical_type type;
	duckdb_type id;
	bool is_json; /* text that is JSON already */
	/* Of the current chunk. */
	duckdb_vector vector;
	void *data;
	uint64_t *validity; /* NULL: nothing is NULL */
};

/* Of a result that has begun: its columns. 0 or -ENOMEM. */
int cell_columns_init(struct tables_result *result);
void cell_columns_fini(struct tables_result *result);
/* To be called for each new chunk. */
void cell_chunk(struct tables_result *result);

/* Appends a type as SQL spells it. */
void cell_type(struct buf *out, duckdb_logical_type type);

#endif
