/*
 * Opens a packed recording, a DuckDB database that may come from anyone. The session is locked
 * before the file is attached, and the file is refused unless it holds only what kymo pack writes:
 * base tables, and trace.zones with the one text. Until then nothing of it is evaluated.
 */
#ifndef KYMO_TABLES_PACKED_ATTACH_PACKED_H
#define KYMO_TABLES_PACKED_ATTACH_PACKED_H

#include <stdbool.h>

#include "tables/duck.h"

/* Attaches it as database rec and uses it. unsafe: the session stays open to files and settings. */
int attach_packed(duckdb_connection connection, const char *path, bool unsafe,
		  struct kymo_error *err);

#endif
