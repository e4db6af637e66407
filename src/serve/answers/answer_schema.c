/* Tables and columns, with their descriptions. */
#include <string.h>

#include "serve/serve_inside.h"
#include "serve_sql.h"
#include "tables/catalog/catalog.h"
#include "views/query/json.h"
#include "views/query/rows.h"

struct schema {
	struct buf *out;
	char schema[128], table[128];
	const struct catalog_view *view; /* a built-in one; NULL: the user's */
	bool began;
};

static const struct catalog_view *find_view(const char *schema, const char *table)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcmp(catalog_views[i].schema, schema) &&
		    !strcmp(catalog_views[i].name, table))
			return &catalog_views[i];
	return NULL;
}

static const char *about(const struct catalog_view *view, const char *column)
{
	for (size_t i = 0; view && i < view->column_count; i++)
		if (!strcmp(view->columns[i].name, column))
			return view->columns[i].about ? view->columns[i].about : "";
	return "";
}

static void answer_schema_key_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, strlen(text));
}

static void answer_schema_begin_table(struct schema *to, const char *schema, const char *table)
{
	buf_text(to->out, to->began ? "]},\n{" : "\n{");
	to->began = true;
	strcpy(to->schema, schema);
	strcpy(to->table, table);
	to->view = find_view(schema, table);
	answer_schema_key_text(to->out, "schema", schema);
	buf_char(to->out, ',');
	answer_schema_key_text(to->out, "name", table);
	buf_char(to->out, ',');
	answer_schema_key_text(to->out, "about",
			       to->view ? to->view->about : "A table defined by the program.");
	buf_text(to->out, ",\"columns\":[");
}

static int column_row(const struct rows *rows, void *context)
{
	struct schema *to = context;
	char schema[128], table[128], column[128], type[128];

	rows_copy_text(rows, 0, schema, sizeof(schema));
	rows_copy_text(rows, 1, table, sizeof(table));
	rows_copy_text(rows, 2, column, sizeof(column));
	rows_copy_text(rows, 3, type, sizeof(type));
	if (!to->began || strcmp(schema, to->schema) || strcmp(table, to->table))
		answer_schema_begin_table(to, schema, table);
	else
		buf_char(to->out, ',');
	buf_char(to->out, '{');
	answer_schema_key_text(to->out, "name", column);
	buf_char(to->out, ',');
	answer_schema_key_text(to->out, "type", type);
	buf_char(to->out, ',');
	answer_schema_key_text(to->out, "about", about(to->view, column));
	buf_char(to->out, '}');
	return 0;
}

void answer_schema(struct request *request)
{
	struct tables_options options = { .timeout_ms = 20000 };
	struct target *target = request_target(request);
	struct schema to = { .out = &request->answer };
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	int rc;

	if (!target)
		return;
	rc = target_open_tables(target, &options, &tables, &err);
	buf_text(&request->answer, "{\"tables\":[");
	if (!rc)
		rc = rows_each(tables, sql_answer_schema, column_row, &to, &err);
	buf_text(&request->answer, to.began ? "]}]}\n" : "]}\n");
	if (rc)
		answer_failed(request, rc, &err);
	tables_close(tables);
}
