#include "tables/catalog/catalog.h"

#include <stdio.h>
#include <string.h>

/* A bar would end the cell of a Markdown table. */
static void catalog_docs_add_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_char(out, '\\');
		buf_char(out, *text);
	}
}

static void catalog_docs_add_columns(struct buf *out, const struct catalog_view *view)
{
	buf_text(out, "| column | type | |\n|---|---|---|\n");
	for (size_t i = 0; i < view->column_count; i++) {
		buf_print(out, "| `%s` | %s | ", view->columns[i].name, view->columns[i].type);
		catalog_docs_add_cell(out, view->columns[i].about);
		buf_text(out, " |\n");
	}
}

/* For a view that reads the stream of its own name. */
static void add_source(struct buf *out, const struct catalog_view *view)
{
	char scan[128];

	snprintf(scan, sizeof(scan), "kymo_scan('%s.%s')", view->schema, view->name);
	if (strstr(view->sql, scan))
		buf_print(
			out,
			"\nRows come from the streams named `%s.%s`; `FROM %s` shows all of their "
			"columns and takes a range of time (`from_ns := …, to_ns := …`) or of "
			"steps (`step_from := …, step_to := …`) where the table has them.\n",
			view->schema, view->name, scan);
}

void catalog_page(struct buf *out, const struct catalog_view *view)
{
	buf_print(
		out,
		"<!-- Written by tools/gen-table-docs from src/tables/sql/%s/%s.%s.sql; edit that. "
		"-->\n# %s.%s\n\n%s\n\n",
		view->schema, view->schema, view->name, view->schema, view->name, view->about);
	buf_print(out, "    kymo query latest \"FROM %s.%s\"\n\n", view->schema, view->name);
	catalog_docs_add_columns(out, view);
	add_source(out, view);
}

void catalog_index_page(struct buf *out)
{
	const char *schema = "";

	buf_text(out, "<!-- Written by tools/gen-table-docs from src/tables/sql; edit that. -->\n# "
		      "Tables\n\n"
		      "Every recording has these tables; one without data is empty. `SHOW TABLES` "
		      "lists them together with the\n"
		      "program's own. Columns that end in `_ns` are in ns; a time counts from the "
		      "start of the recording, and\n"
		      "`kymo.runs.started_unix_ns` converts it to wall time. NULL means not "
		      "known.\n");
	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];

		if (strcmp(schema, view->schema))
			buf_print(out, "\n## %s\n\n| table | |\n|---|---|\n", view->schema);
		schema = view->schema;
		buf_print(out, "| [%s.%s](%s.%s.md) | ", view->schema, view->name, view->schema,
			  view->name);
		catalog_docs_add_cell(out, view->about);
		buf_text(out, " |\n");
	}
}
