/* A packed file of an earlier kymo lacks columns and tables that later ones have. Views in front of
   its tables add them, empty. */
#ifndef KYMO_TABLES_PACKED_PACKED_OLD_H
#define KYMO_TABLES_PACKED_PACKED_OLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "tables/duck.h"

/* Names of others, in the order of the query. */
struct packed_column {
	char *schema, *table, *column, *type;
};

struct packed_columns {
	struct packed_column *rows;
	size_t count, room;
};

/* Reads the columns that sql/packed_columns.sql lists. The caller calls packed_columns_fini(), also
   after a failure. */
int packed_columns_read(duckdb_connection connection, const char *sql, struct packed_columns *out,
			struct kymo_error *err);
void packed_columns_fini(struct packed_columns *columns);

/* The first column of a table of the catalog that has another type there, which is *out_type;
   NULL: none. */
const struct packed_column *packed_columns_wrong(const struct packed_columns *columns,
						 const char **out_type);

/* Whether a table of the catalog or a column of one is missing. */
bool packed_old_is(const struct packed_columns *columns);
/* Statements that make database rec: a view of each table of database packed, with the missing
   columns as NULL, and an empty view for each missing table. */
void packed_old_sql(struct buf *out, const struct packed_columns *columns);

#endif
