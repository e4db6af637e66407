/* Registers a table function with DuckDB. */
#ifndef KYMO_TABLES_SCAN_TABLE_FUNCTION_H
#define KYMO_TABLES_SCAN_TABLE_FUNCTION_H

#include <stdbool.h>

#include "tables/duck.h"

struct table_function {
	const char *name;
	void *extra; /* passed to bind */
	duckdb_delete_callback_t free_extra; /* NULL if it is not freed here */
	duckdb_table_function_bind_t bind;
	duckdb_table_function_init_t init;
	duckdb_table_function_init_t init_thread; /* NULL: none */
	duckdb_table_function_t emit;
	bool some_columns; /* it produces only the requested columns */
};

/* A parameter as text, for duck.free(); NULL: it is NULL. DuckDB's own function fails for that,
   with addresses of this process in its message. */
char *table_function_text(duckdb_bind_info info, idx_t index);

/* made: from duck.create_table_function(), with its parameters; destroyed by this call. 0, or
   -EIO and a sentence. */
int table_function_register(duckdb_connection connection, duckdb_table_function made,
			    const struct table_function *function, struct kymo_error *err);

#endif
