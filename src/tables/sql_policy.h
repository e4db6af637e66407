/* Restrictions on SQL over a recording. DuckDB is locked down in any case (no files, no
   settings, read only). These checks run first: their messages are better, and they cover the
   gaps of the lock-down. */
#ifndef KYMO_TABLES_SQL_POLICY_H
#define KYMO_TABLES_SQL_POLICY_H

#include "tables/duck.h"

/* 0 for SELECT and EXPLAIN, else -EPERM and a sentence that mentions --unsafe. */
int sql_policy_check_statement(duckdb_statement_type type, struct kymo_error *err);
/* -EPERM if the text calls a function that changes the session (enable_logging, …) or reads
   files. */
int sql_policy_check_functions(const char *sql, struct kymo_error *err);

#endif
