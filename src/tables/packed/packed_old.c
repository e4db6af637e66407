#include "tables/packed/packed_old.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tables/catalog/catalog.h"

/* ---- the columns of the file ----------------------------------------------------------------- */

static char *take_column_name(duckdb_data_chunk chunk, idx_t column, idx_t row)
{
	duckdb_vector vector = duck.data_chunk_get_vector(chunk, column);
	const duckdb_string_t *text = (duckdb_string_t *)duck.vector_get_data(vector) + row;
	uint32_t bytes = text->value.inlined.length;

	return strndup(bytes <= sizeof(text->value.inlined.inlined) ? text->value.inlined.inlined
								    : text->value.pointer.ptr,
		       bytes);
}

static bool take_column_names(struct packed_columns *out, duckdb_data_chunk chunk)
{
	idx_t count = duck.data_chunk_get_size(chunk);

	for (idx_t row = 0; row < count; row++) {
		struct packed_column *one;

		if (!grow((void **)&out->rows, &out->room, out->count, sizeof(*out->rows)))
			return false;
		one = &out->rows[out->count++];
		one->schema = take_column_name(chunk, 0, row);
		one->table = take_column_name(chunk, 1, row);
		one->column = take_column_name(chunk, 2, row);
		one->type = take_column_name(chunk, 3, row);
		if (!one->schema || !one->table || !one->column || !one->type)
			return false;
	}
	return true;
}

int packed_columns_read(duckdb_connection connection, const char *sql, struct packed_columns *out,
			struct kymo_error *err)
{
	duckdb_data_chunk chunk;
	duckdb_result result;
	bool whole = true;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	memset(&result, 0, sizeof(result));
	if (duck.query(connection, sql, &result) == DuckDBError) {
		const char *why = duck.result_error(&result);

		rc = error_set(err, EIO, ": %s", why ? why : "DuckDB gave no reason");
	}
	while (!rc && (chunk = duck.fetch_chunk(result))) {
		whole = whole && take_column_names(out, chunk);
		duck.destroy_data_chunk(&chunk);
	}
	duck.destroy_result(&result);
	return whole ? rc : error_set(err, ENOMEM, ": no memory for its columns");
}

void packed_columns_fini(struct packed_columns *columns)
{
	for (size_t i = 0; i < columns->count; i++) {
		free(columns->rows[i].schema);
		free(columns->rows[i].table);
		free(columns->rows[i].column);
		free(columns->rows[i].type);
	}
	free(columns->rows);
	memset(columns, 0, sizeof(*columns));
}

/* ---- types ----------------------------------------------------------------------------------- */

/* The type that the catalog has for it; NULL: another table, or a column of a later version. */
static const char *catalog_type_of(const struct packed_column *column)
{
	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];

		if (strcmp(view->name, column->table) || strcmp(view->schema, column->schema))
			continue;
		for (size_t k = 0; k < view->column_count; k++)
			if (!strcmp(view->columns[k].name, column->column))
				return view->columns[k].type;
	}
	return NULL;
}

const struct packed_column *packed_columns_wrong(const struct packed_columns *columns,
						 const char **out_type)
{
	for (size_t i = 0; i < columns->count; i++) {
		*out_type = catalog_type_of(&columns->rows[i]);
		if (*out_type && strcmp(*out_type, columns->rows[i].type) != 0)
			return &columns->rows[i];
	}
	return NULL;
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* column: NULL finds any of the table. *hint: where the search begins, which is where the last one
   ended, since both lists have about the same order. */
static bool packed_old_has(const struct packed_columns *columns, const struct catalog_view *view,
			   const char *column, size_t *hint)
{
	for (size_t i = 0; i < columns->count; i++) {
		size_t at = (*hint + i) % columns->count;
		const struct packed_column *one = &columns->rows[at];

		if ((!column || !strcmp(one->column, column)) && !strcmp(one->table, view->name) &&
		    !strcmp(one->schema, view->schema)) {
			*hint = at;
			return true;
		}
	}
	return false;
}

bool packed_old_is(const struct packed_columns *columns)
{
	size_t hint = 0;

	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];

		for (size_t k = 0; k < view->column_count; k++)
			if (!packed_old_has(columns, view, view->columns[k].name, &hint))
				return true;
	}
	return false;
}

/* ---- the views ------------------------------------------------------------------------------- */

static void begin_view(struct buf *out, const char *schema, const char *table)
{
	buf_text(out, "CREATE SCHEMA IF NOT EXISTS rec.");
	catalog_quote(out, schema);
	buf_text(out, "; CREATE VIEW rec.");
	catalog_quote(out, schema);
	buf_char(out, '.');
	catalog_quote(out, table);
	buf_text(out, " AS SELECT ");
}

static void add_empty_column(struct buf *out, const struct catalog_column *column)
{
	/* Queries join by host and pid. */
	buf_text(out, strcmp(column->name, "host") ? "NULL::" : "''::");
	buf_print(out, "%s AS ", column->type);
	catalog_quote(out, column->name);
}

static void add_missing_columns(struct buf *out, const struct packed_columns *columns,
				const struct packed_column *table)
{
	size_t hint = 0;

	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];

		if (strcmp(view->schema, table->schema) || strcmp(view->name, table->table))
			continue;
		for (size_t k = 0; k < view->column_count; k++) {
			if (packed_old_has(columns, view, view->columns[k].name, &hint))
				continue;
			buf_text(out, ", ");
			add_empty_column(out, &view->columns[k]);
		}
	}
}

static void add_view_of_table(struct buf *out, const struct packed_columns *columns,
			      const struct packed_column *table)
{
	begin_view(out, table->schema, table->table);
	buf_char(out, '*');
	add_missing_columns(out, columns, table);
	buf_text(out, " FROM packed.");
	catalog_quote(out, table->schema);
	buf_char(out, '.');
	catalog_quote(out, table->table);
	buf_text(out, ";\n");
}

static void add_empty_view(struct buf *out, const struct catalog_view *view)
{
	begin_view(out, view->schema, view->name);
	for (size_t k = 0; k < view->column_count; k++) {
		buf_text(out, k ? ", " : "");
		add_empty_column(out, &view->columns[k]);
	}
	buf_text(out, " WHERE false;\n");
}

void packed_old_sql(struct buf *out, const struct packed_columns *columns)
{
	const struct packed_column *before = NULL;
	size_t hint = 0;

	buf_text(out, "ATTACH ':memory:' AS rec;\n");
	for (size_t i = 0; i < columns->count; i++) {
		const struct packed_column *one = &columns->rows[i];

		if (!before || strcmp(before->table, one->table) ||
		    strcmp(before->schema, one->schema))
			add_view_of_table(out, columns, one);
		before = one;
	}
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!packed_old_has(columns, &catalog_views[i], NULL, &hint))
			add_empty_view(out, &catalog_views[i]);
}
