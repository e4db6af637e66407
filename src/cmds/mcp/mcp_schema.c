/* The tool schema: all tables, each in a line, or the columns of one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/mcp/mcp_tools.h"
#include "serve_sql.h"
#include "tables/catalog/catalog.h"
#include "tables/tables.h"
#include "views/query/rows.h"
#include "views/term/text.h"

#define SECONDS 20

struct mcp_tables {
	const char *wanted; /* schema.table; NULL: all */
	char table[260]; /* of the last row */
	const struct catalog_view *view;
	size_t found;
};

static void begin_table(struct mcp_tables *to, const char *table)
{
	strcpy(to->table, table);
	to->view = catalog_find(table);
	if (to->wanted && strcmp(to->wanted, table) != 0)
		return;
	to->found++;
	text_line(stdout, "%s: %s", table, to->view ? to->view->about : "a table of the program");
}

static void print_column(const struct mcp_tables *to, const char *column, const char *type)
{
	const char *about = "";

	for (size_t i = 0; to->view && i < to->view->column_count; i++)
		if (!strcmp(to->view->columns[i].name, column))
			about = to->view->columns[i].about;
	text_line(stdout, "  %s %s%s%s", column, type, about && *about ? ": " : "",
		  about ? about : "");
}

static int mcp_schema_row(const struct rows *rows, void *context)
{
	struct mcp_tables *to = context;
	char schema[128], name[128], column[128], type[128], table[sizeof(to->table)];

	rows_copy_text(rows, 0, schema, sizeof(schema));
	rows_copy_text(rows, 1, name, sizeof(name));
	snprintf(table, sizeof(table), "%s.%s", schema, name);
	if (strcmp(table, to->table) != 0)
		begin_table(to, table);
	if (!to->wanted || strcmp(to->wanted, table) != 0)
		return 0;
	rows_copy_text(rows, 2, column, sizeof(column));
	rows_copy_text(rows, 3, type, sizeof(type));
	print_column(to, column, type);
	return 0;
}

static int mcp_schema_local(void *context)
{
	const struct mcp_arguments *arguments = context;
	struct mcp_tables to = { .wanted = json_read_get(&arguments->json, "table") };
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	const char *target;
	int rc;

	if (to.wanted && !*to.wanted)
		to.wanted = NULL;
	if (!mcp_tools_target(arguments, "target", &target))
		return CMDS_FAILED;
	rc = mcp_tools_open(target, SECONDS * 1000, &tables, &err);
	if (!rc)
		rc = rows_each(tables, sql_answer_schema, mcp_schema_row, &to, &err);
	if (!rc && to.wanted && !to.found)
		rc = error_set(&err, ENOENT,
			       "the recording has no table %s; without the argument table the tool "
			       "lists all",
			       to.wanted);
	cmds_close(tables);
	return rc ? cmds_fail("schema", &err) : CMDS_OK;
}

int mcp_schema(const struct mcp_arguments *arguments)
{
	return cmds_guarded("schema", mcp_schema_local, (void *)arguments);
}
