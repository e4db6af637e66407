#include "tables/scan/table_function.h"

#include <errno.h>

char *table_function_text(duckdb_bind_info info, idx_t index)
{
	duckdb_value value = duck.bind_get_parameter(info, index);
	char *text = value && !duck.is_null_value(value) ? duck.get_varchar(value) : NULL;

	if (value)
		duck.destroy_value(&value);
	return text;
}

int table_function_register(duckdb_connection connection, duckdb_table_function made,
			    const struct table_function *function, struct kymo_error *err)
{
	duckdb_state state;

	duck.table_function_set_name(made, function->name);
	duck.table_function_set_extra_info(made, function->extra, function->free_extra);
	duck.table_function_set_bind(made, function->bind);
	duck.table_function_set_init(made, function->init);
	if (function->init_thread)
		duck.table_function_set_local_init(made, function->init_thread);
	duck.table_function_set_function(made, function->emit);
	duck.table_function_supports_projection_pushdown(made, function->some_columns);
	state = duck.register_table_function(connection, made);
	duck.destroy_table_function(&made);
	if (state == DuckDBError)
		return error_set(err, EIO, "cannot register the table function %s with DuckDB",
				 function->name);
	return 0;
}
