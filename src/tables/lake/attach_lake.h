/*
 * Opens a job of a lake (store/lake/lake_dir.h): views over its Parquet files, with the names and
 * columns of a recording's tables. The files may come from anyone: the session is locked to the
 * lake's directory before one of them is read. A file that is not whole or not of a lake is left
 * out, with a sentence.
 */
#ifndef KYMO_TABLES_LAKE_ATTACH_LAKE_H
#define KYMO_TABLES_LAKE_ATTACH_LAKE_H

#include <stdbool.h>

#include "base/buf.h"
#include "tables/duck.h"

/* Makes database rec of it. unsafe: the session stays open to files and settings. Sentences about
   what was left out are added to *problems. */
int attach_lake(duckdb_connection connection, const char *path, bool unsafe, struct buf *problems,
		struct kymo_error *err);

#endif
