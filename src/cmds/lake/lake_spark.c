/* kymo lake spark-sql: statements that create the tables of a job in Spark. Each has an explicit
   schema and one directory: Spark looks for no partitions and infers nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/lake/lake_words.h"
#include "lake_sql.h"
#include "store/lake/lake_dir.h"
#include "tables/catalog/catalog.h"
#include "tables/tables.h"
#include "views/query/rows.h"
#include "views/term/target.h"

/* Views over all hosts, in Spark's SQL; each reads SCHEMA.NAME_rows. */
static const struct {
	const char *schema, *name, *sql;
	bool has_rows;
} spark_views[] = {
	{ "dist", "ranks", sql_spark_ranks, true },
	{ "dist", "collectives", sql_spark_collectives, true },
	{ "dist", "clocks", sql_spark_clocks, true },
	{ "dist", "late", sql_spark_late, false },
	{ "dist", "desync", sql_spark_desync, false },
	{ "kymo", "problems", sql_spark_problems, true },
};

static const char *spark_type(const char *type)
{
	static const char *const types[][2] = {
		{ "INTEGER", "INT" },		{ "VARCHAR", "STRING" },
		{ "UBIGINT", "DECIMAL(20,0)" }, { "VARCHAR[]", "ARRAY<STRING>" },
		{ "UINTEGER", "BIGINT" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i][0], type))
			return types[i][1];
	return type;
}

/* A text of Spark: backslashes are escapes there. */
static void spark_quote(struct buf *out, const char *text, char mark)
{
	buf_char(out, mark);
	for (; *text; text++) {
		if (*text == '\\' || (mark == '\'' && *text == mark))
			buf_char(out, '\\');
		if (mark == '`' && *text == mark)
			buf_char(out, mark);
		buf_char(out, *text);
	}
	buf_char(out, mark);
}

static void spark_directory(struct buf *out, const struct lake_job *job,
			    const struct catalog_view *view)
{
	buf_print(out, "%s/%s.%s/run=%s", job->lake, view->schema, view->name, job->run);
}

static void spark_empty(struct buf *out, const struct catalog_view *view, const char *more)
{
	buf_print(out, "CREATE OR REPLACE VIEW %s.%s%s AS SELECT ", view->schema, view->name, more);
	for (size_t i = 0; i < view->column_count; i++)
		buf_print(out, "%sCAST(NULL AS %s) AS `%s`", i ? ", " : "",
			  spark_type(view->columns[i].type), view->columns[i].name);
	buf_text(out, " WHERE false;\n");
}

/* A directory with other files, too: those that are data are named. */
static void spark_some(struct buf *out, const struct lake_job *job, const struct lake_table *table,
		       const struct catalog_view *view, const char *more)
{
	struct buf path = { 0 };

	spark_directory(&path, job, view);
	buf_text(&path, "/{");
	for (size_t i = 0; i < table->count; i++)
		buf_print(&path, "%s%s", i ? "," : "", table->files[i].name);
	buf_char(&path, '}');
	buf_print(out, "CREATE OR REPLACE VIEW %s.%s%s AS SELECT ", view->schema, view->name, more);
	for (size_t i = 0; i < view->column_count; i++)
		buf_print(out, "%sCAST(`%s` AS %s) AS `%s`", i ? ", " : "", view->columns[i].name,
			  spark_type(view->columns[i].type), view->columns[i].name);
	buf_text(out, " FROM parquet.");
	spark_quote(out, buf_get(&path), '`');
	buf_text(out, ";\n");
	buf_fini(&path);
}

static void spark_table(struct buf *out, const struct lake_listing *listing,
			const struct catalog_view *view, const char *more)
{
	const struct lake_table *table = lake_find(listing, view->schema, view->name);
	struct buf path = { 0 };

	if (!table || table->left_out) {
		if (table)
			spark_some(out, &listing->job, table, view, more);
		else
			spark_empty(out, view, more);
		return;
	}
	spark_directory(&path, &listing->job, view);
	buf_print(out, "DROP TABLE IF EXISTS %s.%s%s;\nCREATE TABLE %s.%s%s (", view->schema,
		  view->name, more, view->schema, view->name, more);
	for (size_t i = 0; i < view->column_count; i++)
		buf_print(out, "%s`%s` %s", i ? ", " : "", view->columns[i].name,
			  spark_type(view->columns[i].type));
	buf_text(out, ") USING parquet LOCATION ");
	spark_quote(out, buf_get(&path), '\'');
	buf_text(out, ";\n");
	buf_fini(&path);
}

static size_t spark_view_of(const struct catalog_view *view)
{
	size_t i = 0;

	while (i < sizeof(spark_views) / sizeof(spark_views[0]) &&
	       (strcmp(spark_views[i].schema, view->schema) ||
		strcmp(spark_views[i].name, view->name)))
		i++;
	return i;
}

static bool lake_spark_is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

/* Sentences about files that are left out. Their names are foreign: no control character of them
   reaches a terminal. */
static void spark_left_out(struct buf *out, const struct lake_listing *listing)
{
	const char *line = buf_get(&listing->problems), *end;
	struct buf text = { 0 };

	for (; (end = strchr(line, '\n')); line = end + 1) {
		buf_reset(&text);
		for (const char *c = line; c < end; c++)
			buf_char(&text, lake_spark_is_control(*c) ? '?' : *c);
		buf_text(out, " UNION ALL SELECT ");
		spark_quote(out, buf_get(&text), '\'');
	}
	buf_fini(&text);
}

/* ---- tables that are not in the catalog ------------------------------------------------------ */

#define OTHER_COLUMNS_MOST 256u

struct spark_other {
	struct buf *out;
	const struct lake_listing *listing;
	char schema[64], name[64];
	char texts[OTHER_COLUMNS_MOST][2][64];
	struct catalog_column columns[OTHER_COLUMNS_MOST];
	size_t count;
};

static void spark_other_end(struct spark_other *other)
{
	const struct catalog_view view = { .schema = other->schema,
					   .name = other->name,
					   .columns = other->columns,
					   .column_count = other->count };

	if (other->count && lake_find(other->listing, other->schema, other->name)) {
		buf_print(other->out, "CREATE DATABASE IF NOT EXISTS %s;\n", other->schema);
		spark_table(other->out, other->listing, &view, "");
	}
	other->count = 0;
}

static bool spark_knows(const char *schema, const char *name)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcmp(catalog_views[i].schema, schema) &&
		    !strcmp(catalog_views[i].name, name))
			return true;
	return false;
}

static int spark_other_column(const struct rows *rows, void *context)
{
	struct spark_other *other = context;
	struct catalog_column *column;
	char schema[64], name[64];

	rows_copy_text(rows, 0, schema, sizeof(schema));
	rows_copy_text(rows, 1, name, sizeof(name));
	if (spark_knows(schema, name))
		return 0;
	if (strcmp(schema, other->schema) != 0 || strcmp(name, other->name) != 0) {
		spark_other_end(other);
		snprintf(other->schema, sizeof(other->schema), "%s", schema);
		snprintf(other->name, sizeof(other->name), "%s", name);
	}
	if (other->count == OTHER_COLUMNS_MOST)
		return 0;
	column = &other->columns[other->count];
	rows_copy_text(rows, 2, other->texts[other->count][0], sizeof(other->texts[0][0]));
	rows_copy_text(rows, 3, other->texts[other->count][1], sizeof(other->texts[0][1]));
	column->name = other->texts[other->count][0];
	column->type = other->texts[other->count][1];
	other->count += !strchr(column->name, '`');
	return 0;
}

/* Their columns are those of their files: a session of the job knows them. */
static int spark_others(struct buf *out, const struct lake_listing *listing, const char *path,
			struct kymo_error *err)
{
	struct spark_other *other = calloc(1, sizeof(*other));
	struct tables *tables = NULL;
	int rc = other ? cmds_open(path, &tables, err) : error_set(err, ENOMEM, "no memory");

	if (!rc) {
		other->out = out;
		other->listing = listing;
		rc = rows_each(tables, sql_spark_other, spark_other_column, other, err);
		spark_other_end(other);
	}
	cmds_close(tables);
	free(other);
	return rc < 0 ? rc : 0;
}

/* ---- all ------------------------------------------------------- */

static void spark_statements(struct buf *out, const struct lake_listing *listing)
{
	const size_t views = sizeof(spark_views) / sizeof(spark_views[0]);
	const char *schema = "";

	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];
		size_t of_all = spark_view_of(view);

		if (strcmp(schema, view->schema))
			buf_print(out, "CREATE DATABASE IF NOT EXISTS %s;\n", view->schema);
		schema = view->schema;
		if (of_all == views || spark_views[of_all].has_rows)
			spark_table(out, listing, view, of_all == views ? "" : "_rows");
	}
	for (size_t i = 0; i < views; i++) {
		buf_print(out, "CREATE OR REPLACE VIEW %s.%s AS %s", spark_views[i].schema,
			  spark_views[i].name, spark_views[i].sql);
		if (!strcmp(spark_views[i].name, "problems"))
			spark_left_out(out, listing);
		buf_text(out, ";\n");
	}
}

/* In a child: DuckDB runs here. */
static int spark_local(void *context)
{
	const struct lake_request *request = context;
	struct lake_listing listing;
	struct kymo_error err = { 0 };
	struct buf out = { 0 };
	char path[KYMO_PATH_BYTES];
	int rc;

	memset(&listing, 0, sizeof(listing));
	rc = target_resolve(request->words[0], path, sizeof(path), &err);
	if (!rc)
		rc = lake_list(path, &listing, &err);
	if (!rc) {
		spark_statements(&out, &listing);
		rc = spark_others(&out, &listing, path, &err);
	}
	if (!rc)
		fputs(buf_get(&out), stdout); /* not foreign: names are plain, texts quoted */
	buf_fini(&out);
	lake_listing_fini(&listing);
	return rc ? cmds_fail("lake", &err) : cmds_finish("lake");
}

int lake_words_spark_sql(struct lake_request *request)
{
	return cmds_guarded("lake", spark_local, request);
}
