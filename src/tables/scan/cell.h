/* Converts vectors of DuckDB to the values of tables_cell(): numbers, text, and JSON for nested
   values. */
#ifndef KYMO_TABLES_SCAN_CELL_H
#define KYMO_TABLES_SCAN_CELL_H

#include "base/buf.h"
#include "tables/session.h"

struct cell_column {
	const char *name; /* owned by DuckDB, valid as long as the result */
	char *type_name;
	duckdb_logical_type type;
	duckdb_type id;
	bool is_json; /* the text is JSON */
	/* Of the current chunk. */
	duckdb_vector vector;
	void *data;
	uint64_t *validity; /* NULL if no value is NULL */
};

/* The columns of a started result. 0 or -ENOMEM. */
int cell_columns_init(struct tables_result *result);
void cell_columns_fini(struct tables_result *result);
/* Call it for each new chunk. */
void cell_chunk(struct tables_result *result);

/* Appends a type as SQL spells it. */
void cell_type(struct buf *out, duckdb_logical_type type);

#endif
