/* What SQL over a recording may not do. DuckDB's own locks hold in any case (no files, no
   settings, read only); these refusals come first, so that the sentence is a good one, and for
   what those locks leave open. */
#ifndef KYMO_TABLES_SQL_POLICY_H
#define KYMO_TABLES_SQL_POLICY_H

#include "tables/duck.h"

/* 0 for SELECT and EXPLAIN, else -EPERM and a sentence that names --unsafe. */
int sql_policy_check_statement(duckdb_statement_type type, struct kymo_error *err);
/* -EPERM where the text calls a function that changes the session (enable_logging, …) or reads
   files. */
int sql_policy_check_functions(const char *sql, struct kymo_error *err);

#endif
