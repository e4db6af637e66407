#include "tables/sql_policy.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

int sql_policy_check_statement(duckdb_statement_type type, struct kymo_error *err)
{
	static const char *const names[] = {
		[DUCKDB_STATEMENT_TYPE_INSERT] = "INSERT",
		[DUCKDB_STATEMENT_TYPE_UPDATE] = "UPDATE",
		[DUCKDB_STATEMENT_TYPE_DELETE] = "DELETE",
		[DUCKDB_STATEMENT_TYPE_PREPARE] = "PREPARE",
		[DUCKDB_STATEMENT_TYPE_CREATE] = "CREATE",
		[DUCKDB_STATEMENT_TYPE_EXECUTE] = "EXECUTE",
		[DUCKDB_STATEMENT_TYPE_ALTER] = "ALTER",
		[DUCKDB_STATEMENT_TYPE_TRANSACTION] = "a transaction",
		[DUCKDB_STATEMENT_TYPE_COPY] = "COPY",
		[DUCKDB_STATEMENT_TYPE_ANALYZE] = "ANALYZE",
		[DUCKDB_STATEMENT_TYPE_VARIABLE_SET] = "SET",
		[DUCKDB_STATEMENT_TYPE_CREATE_FUNC] = "CREATE",
		[DUCKDB_STATEMENT_TYPE_DROP] = "DROP",
		[DUCKDB_STATEMENT_TYPE_EXPORT] = "EXPORT",
		[DUCKDB_STATEMENT_TYPE_PRAGMA] = "PRAGMA",
		[DUCKDB_STATEMENT_TYPE_VACUUM] = "VACUUM",
		[DUCKDB_STATEMENT_TYPE_CALL] = "CALL",
		[DUCKDB_STATEMENT_TYPE_SET] = "SET",
		[DUCKDB_STATEMENT_TYPE_LOAD] = "LOAD",
		[DUCKDB_STATEMENT_TYPE_ATTACH] = "ATTACH",
		[DUCKDB_STATEMENT_TYPE_DETACH] = "DETACH",
	};
	const char *name = (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;

	if (type == DUCKDB_STATEMENT_TYPE_SELECT || type == DUCKDB_STATEMENT_TYPE_EXPLAIN)
		return 0;
	return error_set(err, EPERM,
			 "SQL over a recording must be one SELECT or EXPLAIN, not %s; --unsafe "
			 "allows all statements",
			 name ? name : "another statement");
}

/* Functions that a SELECT can call and that do more than read the recording, and those that take
   SQL as a text, which could hide the others. tests/attack/test_policy.py demands that each table
   function of DuckDB is here or known to be harmless. */
static const char *const functions[] = {
	"enable_logging",
	"disable_logging",
	"truncate_duckdb_logs",
	"enable_profiling",
	"disable_profiling",
	"enable_peg_parser",
	"disable_peg_parser",
	"checkpoint",
	"force_checkpoint",
	"check_peg_parser",
	"sql_auto_complete",
	"write_log",
	"import_database",
	"copy_database",
	"seq_scan",
	"arrow_scan",
	"arrow_scan_dumb",
	"query",
	"query_table",
	"json_execute_serialized_sql",
	"read_csv",
	"read_csv_auto",
	"sniff_csv",
	"read_parquet",
	"parquet_scan",
	"parquet_metadata",
	"parquet_schema",
	"parquet_file_metadata",
	"parquet_kv_metadata",
	"parquet_full_metadata",
	"parquet_bloom_probe",
	"read_json",
	"read_json_auto",
	"read_json_objects",
	"read_json_objects_auto",
	"read_ndjson",
	"read_ndjson_auto",
	"read_ndjson_objects",
	"read_text",
	"read_blob",
	"read_duckdb",
	"glob",
	"duckdb_secrets",
	"duckdb_extensions",
	"which_secret",
	"getenv",
};

static bool sql_policy_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Whether a call follows or may follow: a byte beyond ASCII might be a space, a comment might
   nest. */
static bool call_follows(const char *at)
{
	at += *at == '"';
	while (isspace((unsigned char)*at) || (*at & 0x80))
		at++;
	return *at == '(' || !strncmp(at, "--", 2) || !strncmp(at, "/*", 2);
}

static const char *find_function(const char *word, size_t bytes)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strlen(functions[i]) == bytes && !strncasecmp(functions[i], word, bytes))
			return functions[i];
	return NULL;
}

/* Checks all words, also in strings and comments, so that no quoting can hide a call. A query that
   searches for the text 'glob(' therefore needs --unsafe. */
int sql_policy_check_functions(const char *sql, struct kymo_error *err)
{
	const char *name;
	size_t bytes;

	for (const char *at = sql; *at; at += bytes) {
		for (bytes = 0; sql_policy_is_word(at[bytes]);)
			bytes++;
		name = bytes ? find_function(at, bytes) : NULL;
		if (name && call_follows(at + bytes))
			return error_set(err, EPERM,
					 "SQL over a recording may not call %s(); --unsafe allows "
					 "all statements",
					 name);
		bytes = bytes ? bytes : 1;
	}
	return 0;
}
