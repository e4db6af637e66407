#include "tables/catalog/catalog.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/schema.h"

static void quote(struct buf *out, const char *text, char mark)
{
	buf_char(out, mark);
	for (; *text; text++) {
		if (*text == mark)
			buf_char(out, mark);
		buf_char(out, *text);
	}
	buf_char(out, mark);
}

void catalog_quote(struct buf *out, const char *name)
{
	quote(out, name, '"');
}

void catalog_quote_text(struct buf *out, const char *text)
{
	quote(out, text, '\'');
}

/* Splits "schema.table"; a name without a dot is in schema main. */
static void split_name(const char *table, char *schema, size_t schema_bytes, const char **name)
{
	const char *dot = strchr(table, '.');

	snprintf(schema, schema_bytes, "%.*s", dot ? (int)(dot - table) : 4, dot ? table : "main");
	*name = dot ? dot + 1 : table;
}

static bool own_schema(const char *schema)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcasecmp(catalog_views[i].schema, schema))
			return true;
	return false;
}

const struct catalog_view *catalog_find(const char *table)
{
	char full[128];

	for (size_t i = 0; i < catalog_view_count; i++) {
		snprintf(full, sizeof(full), "%s.%s", catalog_views[i].schema,
			 catalog_views[i].name);
		if (!strcmp(full, table))
			return &catalog_views[i];
	}
	return NULL;
}

/* Whether a view of the catalog already shows the stream. */
static bool in_own_view(const char *table)
{
	return catalog_find(table) && schema_find(table);
}

/* ---- the user's tables -------------------------------------------------------------------- */

static void add_user_column(struct buf *out, const char *name, bool first)
{
	if (!first)
		buf_text(out, ", ");
	catalog_quote(out, name);
}

/* The declared columns, then pid, tid and rank. */
static void add_user_columns(struct buf *out, const struct table_shape *shape)
{
	for (size_t i = 0; i < shape->column_count; i++) {
		const struct table_shape_column *column = &shape->columns[i];

		if (i < shape->declared_count || column->kind == TABLE_SHAPE_PID ||
		    column->kind == TABLE_SHAPE_RANK || !strcmp(column->name, "tid"))
			add_user_column(out, column->name, !i);
	}
}

bool catalog_user_sql(struct buf *out, const struct table_shape *shape, struct buf *problems)
{
	char schema[64];
	const char *name;

	if (in_own_view(shape->table))
		return false;
	split_name(shape->table, schema, sizeof(schema), &name);
	if (own_schema(schema) || !schema[0] || !name[0]) {
		buf_print(problems,
			  "%s: the name is reserved for kymo; kymo_scan('%s') reads the table\n",
			  shape->table, shape->table);
		return false;
	}
	buf_text(out, "CREATE SCHEMA IF NOT EXISTS rec.");
	catalog_quote(out, schema);
	buf_text(out, "; CREATE VIEW rec.");
	catalog_quote(out, schema);
	buf_char(out, '.');
	catalog_quote(out, name);
	buf_text(out, " AS SELECT ");
	add_user_columns(out, shape);
	buf_text(out, " FROM kymo_scan(");
	catalog_quote_text(out, shape->table);
	buf_text(out, ")");
	return true;
}
