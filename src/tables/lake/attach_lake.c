#include "tables/lake/attach_lake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/lake/lake_dir.h"
#include "tables/catalog/lake_columns.h"
#include "tables/sql_fill.h"
#include "tables_sql.h"

struct lake_session {
	duckdb_connection connection;
	struct lake_listing listing;
	struct buf *problems;
};

/* Tables that the files of one writer do not hold whole: ranks, calls and their alignment concern
   all hosts. {files} is a query of what the files hold. */
static const struct {
	const char *schema, *name, *sql;
} lake_views[] = {
	{ "dist", "ranks", sql_lake_ranks },
	{ "dist", "clocks", sql_lake_clocks },
	{ "dist", "collectives", sql_lake_collectives },
	{ "dist", "late", NULL }, /* the catalog's own query */
	{ "dist", "desync", NULL },
	{ "kymo", "problems", sql_lake_problems },
};

static int attach_lake_run(struct lake_session *session, struct buf *sql, const char *doing,
			   struct kymo_error *err)
{
	int rc = sql->failed ? error_set(err, ENOMEM, "no memory for the views of the lake")
			     : duck_run(session->connection, sql->data, doing, err);

	buf_reset(sql);
	return rc;
}

/* ---- locking -------------------------------------------------------------------------------- */

/* After this no statement can access files outside of the lake, or change settings. */
static int lock_to_lake(struct lake_session *session, struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc;

	buf_text(&sql, "SET allowed_directories = [");
	catalog_quote_text(&sql, session->listing.job.lake);
	buf_text(&sql, "]; SET enable_external_access = false; SET lock_configuration = true");
	rc = attach_lake_run(session, &sql, "cannot lock down DuckDB", err);
	buf_fini(&sql);
	return rc;
}

/* ---- one table ------------------------------------------------------------------------------ */

static void attach_lake_add_file(struct buf *out, const struct lake_session *session,
				 const struct lake_table *table, const struct lake_file *file)
{
	struct buf path = { 0 };

	buf_print(&path, "%s/%s.%s/run=%s/%s", session->listing.job.lake, table->schema,
		  table->name, session->listing.job.run, file->name);
	catalog_quote_text(out, buf_get(&path));
	buf_fini(&path);
}

/* Files with these columns, or with others; returns how many. */
static size_t add_files(struct buf *out, const struct lake_session *session,
			const struct lake_table *table, uint64_t columns, bool same)
{
	size_t count = 0;

	buf_text(out, "read_parquet([");
	for (size_t i = 0; i < table->count; i++) {
		if ((table->files[i].columns == columns) != same)
			continue;
		buf_text(out, count++ ? ", " : "");
		attach_lake_add_file(out, session, table, &table->files[i]);
	}
	buf_print(out, "], hive_partitioning = false, union_by_name = %s)",
		  same ? "false" : "true");
	return count;
}

/* Files of today as they are; those of another version by the names of their columns, with NULL
   for the ones that they lack. */
static void add_rows(struct buf *out, const struct lake_session *session,
		     const struct catalog_view *view)
{
	const struct lake_table *table = lake_find(&session->listing, view->schema, view->name);
	const uint64_t columns = catalog_lake_columns(view);
	struct buf files = { 0 };
	bool any = false;

	if (table && add_files(&files, session, table, columns, true)) {
		buf_text(out, "SELECT ");
		catalog_lake_casts(out, view);
		buf_print(out, " FROM %s", buf_get(&files));
		any = true;
	}
	buf_reset(&files);
	if (table && add_files(&files, session, table, columns, false)) {
		buf_text(out, any ? " UNION ALL " : "");
		buf_text(out, "SELECT ");
		catalog_lake_casts(out, view);
		buf_text(out, " FROM (");
		catalog_lake_nothing(out, view);
		buf_print(out, " UNION ALL BY NAME FROM %s)", buf_get(&files));
		any = true;
	}
	buf_fini(&files);
	if (!any)
		catalog_lake_nothing(out, view);
}

/* ---- all tables ----------------------------------------------------------------------------- */

static void add_view(struct buf *out, const char *schema, const char *name)
{
	buf_text(out, "CREATE SCHEMA IF NOT EXISTS rec.");
	catalog_quote(out, schema);
	buf_text(out, "; CREATE VIEW rec.");
	catalog_quote(out, schema);
	buf_char(out, '.');
	catalog_quote(out, name);
	buf_text(out, " AS ");
}

static bool is_of_all_hosts(const struct catalog_view *view, const char **out_sql)
{
	for (size_t i = 0; i < sizeof(lake_views) / sizeof(lake_views[0]); i++) {
		if (strcmp(lake_views[i].schema, view->schema) ||
		    strcmp(lake_views[i].name, view->name))
			continue;
		*out_sql = lake_views[i].sql ? lake_views[i].sql : view->sql;
		return true;
	}
	*out_sql = "{files}";
	return false;
}

static void attach_lake_add_problems(struct buf *out, const struct lake_session *session)
{
	const char *line = buf_get(&session->listing.problems), *end;
	struct buf text = { 0 };

	for (; (end = strchr(line, '\n')); line = end + 1) {
		buf_reset(&text);
		buf_print(&text, "%.*s", (int)(end - line), line);
		buf_text(out, " UNION ALL SELECT ");
		catalog_quote_text(out, buf_get(&text));
	}
	buf_fini(&text);
}

/* Leaves out the files that DuckDB cannot open, each with a sentence. */
static void weed(struct lake_session *session, const char *schema, const char *name)
{
	struct lake_table *table = (struct lake_table *)lake_find(&session->listing, schema, name);
	struct kymo_error why = { 0 };
	struct buf sql = { 0 };
	size_t kept = 0;

	for (size_t i = 0; table && i < table->count; i++) {
		buf_text(&sql, "SELECT count(*) FROM parquet_schema(");
		attach_lake_add_file(&sql, session, table, &table->files[i]);
		buf_char(&sql, ')');
		if (!attach_lake_run(session, &sql, "", &why))
			table->files[kept++] = table->files[i];
		else
			buf_print(session->problems, "%s.%s/run=%s/%s is left out: %.*s\n", schema,
				  name, session->listing.job.run, table->files[i].name,
				  (int)strcspn(why.text, "\n"), why.text);
	}
	if (table)
		table->count = kept;
	buf_fini(&sql);
}

/* The calls' times on aligned clocks, if the lake has a table of them; without it they stay. */
static void attach_lake_add_clocks(const struct lake_session *session, struct buf *moved,
				   struct buf *clocks)
{
	static const char *const times[] = { "enqueue_ns", "start_ns", "end_ns", "arrival_ns" };
	const bool aligned = lake_find(&session->listing, "dist", "clocks");

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		buf_print(moved,
			  aligned ? "%sc.%s - coalesce(k.offset_ns, 0) "
				    "- round(coalesce(k.drift_ppm, 0) / 1e6 "
				    "* (c.%s - coalesce(k.t0_ns, 0)))::BIGINT AS %s"
				  : "%s%s AS %s",
			  i ? ", " : "", times[i], times[i], times[i]);
	if (aligned)
		buf_text(clocks, "ASOF LEFT JOIN (SELECT rank AS of_rank, host AS of_host, "
				 "offset_ns, drift_ppm, t0_ns, from_ns FROM "
				 "memory.main.lake_clock_pieces) k "
				 "ON k.of_rank = c.rank AND k.of_host = c.host "
				 "AND c.arrival_ns >= k.from_ns");
}

static void fill_view(const struct lake_session *session, const struct catalog_view *view,
		      const char *files, struct buf *sql)
{
	struct buf problems = { 0 }, moved = { 0 }, clocks = { 0 };
	const char *text;

	is_of_all_hosts(view, &text);
	attach_lake_add_problems(&problems, session);
	attach_lake_add_clocks(session, &moved, &clocks);
	add_view(sql, view->schema, view->name);
	sql_fill(sql, text,
		 (struct sql_value[]){ { "files", .text = files },
				       { "problems", .text = buf_get(&problems) },
				       { "ranks", .text = "FROM memory.main.lake_ranks" },
				       { "moved", .text = buf_get(&moved) },
				       { "clocks", .text = buf_get(&clocks) },
				       { NULL } });
	buf_fini(&problems);
	buf_fini(&moved);
	buf_fini(&clocks);
}

/* A view whose files cannot be read is made without those that are damaged, then without any. */
static int make_view(struct lake_session *session, const struct catalog_view *view,
		     struct kymo_error *err)
{
	struct buf sql = { 0 }, files = { 0 };
	struct kymo_error why = { 0 };
	int rc = -1;

	for (int attempt = 0; attempt < 3 && rc; attempt++) {
		buf_reset(&files);
		if (attempt < 2)
			add_rows(&files, session, view);
		else
			catalog_lake_nothing(&files, view);
		fill_view(session, view, buf_get(&files), &sql);
		rc = attach_lake_run(session, &sql, "", &why);
		if (rc && !attempt)
			weed(session, view->schema, view->name);
		else if (rc && attempt == 1)
			buf_print(session->problems, "%s.%s of the lake: %.*s\n", view->schema,
				  view->name, (int)strcspn(why.text, "\n"), why.text);
	}
	buf_fini(&sql);
	buf_fini(&files);
	return rc ? error_set(err, EINVAL, "cannot read %s.%s of the lake: %s", view->schema,
			      view->name, why.text)
		  : 0;
}

static bool in_catalog(const char *schema, const char *name)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcasecmp(catalog_views[i].schema, schema) &&
		    !strcasecmp(catalog_views[i].name, name))
			return true;
	return false;
}

/* Tables of the program, and those that only a lake has. */
static void make_other_views(struct lake_session *session)
{
	struct buf sql = { 0 };
	struct kymo_error why = { 0 };

	for (size_t i = 0; i < session->listing.count; i++) {
		const struct lake_table *table = &session->listing.tables[i];

		if (in_catalog(table->schema, table->name))
			continue;
		add_view(&sql, table->schema, table->name);
		buf_text(&sql, "FROM ");
		add_files(&sql, session, table, UINT64_MAX, false);
		if (attach_lake_run(session, &sql, "", &why))
			buf_print(session->problems, "%s.%s of the lake: %.*s\n", table->schema,
				  table->name, (int)strcspn(why.text, "\n"), why.text);
	}
	buf_fini(&sql);
}

static const struct catalog_view *attach_lake_find_view(const char *schema, const char *name)
{
	const struct catalog_view *view = catalog_views;

	while (strcmp(view->schema, schema) || strcmp(view->name, name))
		view++;
	return view;
}

/* What the views of all hosts read, in the session's own database. */
static int make_helpers(struct lake_session *session, struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc;

	buf_text(&sql, "CREATE VIEW memory.main.lake_ranks AS ");
	add_rows(&sql, session, attach_lake_find_view("dist", "ranks"));
	buf_text(&sql, "; CREATE VIEW memory.main.lake_clocks AS ");
	add_rows(&sql, session, attach_lake_find_view("dist", "clocks"));
	buf_text(&sql, sql_lake_helpers);
	rc = attach_lake_run(session, &sql, "cannot open the lake", err);
	buf_fini(&sql);
	return rc;
}

static int make_views(struct lake_session *session, struct kymo_error *err)
{
	int rc = duck_run(session->connection, "ATTACH ':memory:' AS rec; USE rec",
			  "cannot open the lake", err);
	const char *text;

	/* Those of all hosts read the others. */
	for (size_t i = 0; i < catalog_view_count && !rc; i++)
		if (!is_of_all_hosts(&catalog_views[i], &text))
			rc = make_view(session, &catalog_views[i], err);
	if (!rc)
		rc = make_helpers(session, err);
	for (size_t i = 0; i < sizeof(lake_views) / sizeof(lake_views[0]) && !rc; i++)
		rc = make_view(session,
			       attach_lake_find_view(lake_views[i].schema, lake_views[i].name),
			       err);
	if (!rc)
		make_other_views(session);
	return rc;
}

int attach_lake(duckdb_connection connection, const char *path, bool unsafe, struct buf *problems,
		struct kymo_error *err)
{
	struct lake_session session = { .connection = connection, .problems = problems };
	int rc = lake_list(path, &session.listing, err);

	if (!rc && !unsafe)
		rc = lock_to_lake(&session, err);
	if (!rc) {
		buf_text(problems, buf_get(&session.listing.problems));
		rc = make_views(&session, err);
	}
	lake_listing_fini(&session.listing);
	return rc;
}
