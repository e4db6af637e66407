/*
 * The tables that people ask for, said once: schema, name, columns with their types, where they
 * come from and what they mean. The views of a session, the tables of a packed file and the pages
 * of docs/tables are made from here.
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
	const char *expression; /* over `from`; NULL: the column of that name */
	const char *about;
};

struct catalog_view {
	const char *schema;
	const char *name;
	const char *
		/* what follows FROM; NULL: the stream of the view's own name, if there is one */
		from;
	const struct catalog_column *columns;
	size_t column_count;
	const char *about; /* one sentence */
};

extern const struct catalog_view catalog_views[];
extern const size_t catalog_view_count;

/* Statements that make all schemas and views in the current database, in one transaction. */
void catalog_sql(struct buf *out, const struct table_shape_set *shapes);
/* Statements that make the view of a table that is not ours, in database rec; false where it
   needs none, or (with a sentence in *problems) where its name is taken. */
bool catalog_user_sql(struct buf *out, const struct table_shape *shape, struct buf *problems);

/* Appends "name" as SQL wants it, quotes doubled. */
void catalog_quote(struct buf *out, const char *name);
/* Appends 'text' as SQL wants it. */
void catalog_quote_text(struct buf *out, const char *text);

/* A page of docs/tables, in Markdown. */
void catalog_page(struct buf *out, const struct catalog_view *view);
/* The page that lists them all. */
void catalog_index_page(struct buf *out);

#endif
