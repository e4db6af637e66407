/*
 * The tables of every recording. They are defined by src/tables/sql/SCHEMA.TABLE.sql, one file for
 * each view; the build makes catalog_views of them (tools/embed-sql). The views of a session, the
 * tables of a packed file, /api/schema and docs/tables all come from this array.
 */
#ifndef KYMO_TABLES_CATALOG_CATALOG_H
#define KYMO_TABLES_CATALOG_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "tables/table_shape.h"

struct catalog_column {
	const char *name;
	const char *type; /* SQL */
	const char *about; /* meaning, unit, and when it is NULL */
};

struct catalog_view {
	const char *schema;
	const char *name;
	const char *sql; /* the view's query */
	const struct catalog_column *columns;
	size_t column_count;
	const char *about; /* one sentence */
};

extern const struct catalog_view catalog_views[];
extern const size_t catalog_view_count;

/* The view called schema.name; NULL: there is none. */
const struct catalog_view *catalog_find(const char *table);

/* Statements that create the view of a user's table in database rec. False if it needs none, or
   if its name is taken, with a sentence in *problems. */
bool catalog_user_sql(struct buf *out, const struct table_shape *shape, struct buf *problems);

/* Appends "name" as an SQL identifier, quotes doubled. */
void catalog_quote(struct buf *out, const char *name);
/* Appends 'text' as an SQL string. */
void catalog_quote_text(struct buf *out, const char *text);

/* A page of docs/tables, in Markdown. */
void catalog_page(struct buf *out, const struct catalog_view *view);
/* The page that lists all tables. */
void catalog_index_page(struct buf *out);

#endif
