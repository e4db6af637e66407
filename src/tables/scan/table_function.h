/* Table functions of DuckDB: what each of ours is made of. */
#ifndef KYMO_TABLES_SCAN_TABLE_FUNCTION_H
#define KYMO_TABLES_SCAN_TABLE_FUNCTION_H

#include <stdbool.h>

#include "tables/duck.h"

struct table_function {
	const char *name;
	void *extra; /* what bind gets */
	duckdb_delete_callback_t free_extra; /* NULL: it is somebody else's */
	duckdb_table_function_bind_t bind;
	duckdb_table_function_init_t init;
	duckdb_table_function_init_t init_thread; /* NULL: none */
	duckdb_table_function_t emit;
	bool some_columns; /* it makes only those that are asked for */
};

/* made: by duck.create_table_function(), with its parameters; it is destroyed. 0, or -EIO and a
   sentence. */
int table_function_register(duckdb_connection connection, duckdb_table_function made,
			    const struct table_function *function, struct kymo_error *err);

#endif
