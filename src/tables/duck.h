/* DuckDB's C API as a struct of function pointers. The library is 70 MB; only the commands that
   run queries load it, at run time. `duck.query(…)` is duckdb_query(…). */
#ifndef KYMO_TABLES_DUCK_H
#define KYMO_TABLES_DUCK_H

#include <duckdb.h>

#include "base/error.h"

/* Every function in use, without its prefix. A library that lacks one is rejected. */
/* clang-format off */
#define DUCK_FUNCTIONS(X) \
	/* databases and settings */ \
	X(library_version) X(create_config) X(set_config) X(destroy_config) X(open_ext) X(close) \
	X(connect) X(disconnect) X(interrupt) X(free) \
	/* statements and results */ \
	X(query) X(extract_statements) X(extract_statements_error) X(prepare_extracted_statement) \
	X(destroy_extracted) X(prepare_error) X(prepared_statement_type) X(destroy_prepare) \
	X(pending_prepared_streaming) X(pending_execute_task) X(pending_execution_is_finished) \
	X(pending_error) X(execute_pending) X(destroy_pending) \
	X(destroy_result) X(result_error) X(fetch_chunk) \
	X(column_count) X(column_name) X(column_logical_type) \
	/* values and types */ \
	X(create_int32) X(create_varchar) X(get_int64) X(get_varchar) \
	X(destroy_value) X(is_null_value) X(create_logical_type) X(destroy_logical_type) \
	X(create_list_type) X(get_type_id) X(logical_type_get_alias) X(decimal_width) X(decimal_scale) \
	X(decimal_internal_type) X(enum_internal_type) X(enum_dictionary_size) \
	X(enum_dictionary_value) X(list_type_child_type) X(array_type_child_type) \
	X(array_type_array_size) X(map_type_key_type) X(map_type_value_type) \
	X(struct_type_child_count) X(struct_type_child_name) X(struct_type_child_type) \
	X(union_type_member_count) X(union_type_member_name) X(union_type_member_type) \
	/* chunks and vectors */ \
	X(destroy_data_chunk) X(data_chunk_get_size) X(data_chunk_set_size) \
	X(data_chunk_get_vector) X(vector_size) X(create_vector) \
	X(destroy_vector) X(vector_get_data) X(vector_get_validity) \
	X(vector_ensure_validity_writable) X(vector_assign_string_element_len) \
	X(list_vector_get_child) X(list_vector_reserve) X(list_vector_set_size) X(array_vector_get_child) X(struct_vector_get_child) \
	X(slice_vector) X(vector_reference_vector) X(vector_reference_value) \
	X(create_selection_vector) X(destroy_selection_vector) X(selection_vector_get_data_ptr) \
	/* table functions */ \
	X(create_table_function) X(destroy_table_function) X(table_function_set_name) \
	X(table_function_add_parameter) X(table_function_add_named_parameter) \
	X(table_function_set_extra_info) X(table_function_set_bind) X(table_function_set_init) \
	X(table_function_set_local_init) X(table_function_set_function) \
	X(table_function_supports_projection_pushdown) X(register_table_function) \
	X(bind_get_extra_info) X(bind_add_result_column) X(bind_get_parameter) \
	X(bind_get_named_parameter) X(bind_set_bind_data) X(bind_set_cardinality) \
	X(bind_set_error) X(init_get_extra_info) X(init_get_bind_data) X(init_set_init_data) \
	X(init_get_column_count) X(init_get_column_index) X(init_set_max_threads) \
	X(init_set_error) X(function_get_extra_info) \
	X(function_get_init_data) X(function_get_local_init_data) X(function_set_error) \
	/* Arrow */ \
	X(result_get_arrow_options) X(destroy_arrow_options) X(to_arrow_schema) \
	X(data_chunk_to_arrow) X(error_data_has_error) X(error_data_message) \
	X(destroy_error_data)
/* clang-format on */

struct duck {
#define X(name) __typeof__(&duckdb_##name) name;
	DUCK_FUNCTIONS(X)
#undef X
};

/* All NULL until duck_load() has returned 0. */
extern struct duck duck;

/* Loads the library once. Tries $KYMO_DUCKDB (a file), the program's directory, ../lib/kymo
   relative to it, then the search path of the loader. Returns 0, or a negative errno and a
   sentence that says what to do. Any thread may call it. */
int duck_load(struct kymo_error *err);

/* Runs internal SQL and discards its rows. The error message begins with `doing`. */
int duck_run(duckdb_connection connection, const char *sql, const char *doing,
	     struct kymo_error *err);

#endif
