/* kymo pack: writes a recording as a DuckDB database, which can be read without kymo. Zones are
   narrow rows sorted by start; see sql/pack_zones.sql. All other tables are written as the views
   return them. */
#include "tables/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tables/catalog/catalog.h"
#include "tables/session.h"
#include "tables/sql_fill.h"
#include "base/files/atomic_file.h"
#include "tables_sql.h"

/* Readable by every DuckDB since 1.0; with small blocks, since 1.1. */
#define STORAGE_VERSION "v1.0.0"
#define SMALL_RECORDING_BYTES (UINT64_C(4) << 20)

static int pack_run(duckdb_connection connection, struct buf *sql, struct kymo_error *err)
{
	int rc = sql->failed ? error_set(err, ENOMEM, "no memory to pack")
			     : duck_run(connection, sql->data, "cannot pack", err);

	/* DuckDB has no error code for it. */
	if (rc && err && strstr(err->text, "No space left"))
		rc = -(err->code = ENOSPC);
	buf_reset(sql);
	return rc;
}

/* About forty tables take several blocks each, however few rows they have: a small recording gets
   small blocks, and a third of the file. Larger blocks compress better. */
static unsigned block_bytes(const struct recording *recording)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		bytes += recording->streams[i].kept * recording->streams[i].row_bytes;
	return bytes < SMALL_RECORDING_BYTES ? 16384 : 262144;
}

static void add_attach(struct buf *sql, const char *file, const struct recording *recording)
{
	struct buf spill = { 0 };

	/* Rows that do not fit in memory while they are sorted are spilled next to the file. */
	buf_text(sql, "SET temp_directory = ");
	buf_print(&spill, "%s.spill", file);
	catalog_quote_text(sql, buf_get(&spill));
	buf_fini(&spill);
	buf_text(sql, "; ATTACH ");
	catalog_quote_text(sql, file);
	buf_print(sql,
		  " AS packed (STORAGE_VERSION '" STORAGE_VERSION "', BLOCK_SIZE %u); "
		  "CREATE SCHEMA packed.trace",
		  block_bytes(recording));
}

/* The narrowest type that holds numbers below count. */
static const char *index_type(size_t count)
{
	return count <= 256 ? "UTINYINT" : count <= 65536 ? "USMALLINT" : "UINTEGER";
}

static void pack_add_zones(struct buf *sql, const struct recording *recording)
{
	const struct sql_value types[] = {
		{ "name_type", .text = index_type(recording->name_count) },
		{ "thread_type",
		  .text = index_type(recording->thread_count + recording->process_count) },
		{ NULL },
	};

	sql_fill(sql, sql_pack_zones, types);
}

static bool is_zones(const char *schema, const char *name)
{
	return !strcmp(schema, "trace") && !strcmp(name, "zones");
}

static void add_table(struct buf *sql, const char *schema, const char *name)
{
	struct buf table = { 0 };

	catalog_quote(&table, schema);
	buf_char(&table, '.');
	catalog_quote(&table, name);
	buf_text(sql, "CREATE SCHEMA IF NOT EXISTS packed.");
	catalog_quote(sql, schema);
	buf_print(sql, "; CREATE TABLE packed.%s AS FROM rec.%s;\n", buf_get(&table),
		  buf_get(&table));
	buf_fini(&table);
}

static int add_tables(struct buf *sql, struct tables *tables, struct kymo_error *err)
{
	struct tables_result *result = NULL;
	struct tables_cell cells[2];
	char schema[128], name[128];
	int64_t count = 0;
	int rc = tables_query(tables, sql_pack_views, &result, err);

	while (!rc && (count = tables_next(result, err)) > 0) {
		for (int64_t row = 0; row < count; row++) {
			tables_cell(result, 0, (size_t)row, &cells[0]);
			tables_cell(result, 1, (size_t)row, &cells[1]);
			snprintf(schema, sizeof(schema), "%.*s", (int)cells[0].text_bytes,
				 cells[0].text);
			snprintf(name, sizeof(name), "%.*s", (int)cells[1].text_bytes,
				 cells[1].text);
			if (!is_zones(schema, name))
				add_table(sql, schema, name);
		}
	}
	tables_result_close(result);
	return rc ? rc : (int)count;
}

static void add_comments(struct buf *sql)
{
	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];

		buf_print(sql, "COMMENT ON %s packed.%s.%s IS ",
			  is_zones(view->schema, view->name) ? "VIEW" : "TABLE", view->schema,
			  view->name);
		catalog_quote_text(sql, view->about);
		buf_text(sql, ";");
	}
}

static int write_database(struct tables *tables, duckdb_connection connection, const char *file,
			  struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc;

	add_attach(&sql, file, tables->recording);
	rc = pack_run(connection, &sql, err);
	if (!rc) {
		buf_text(&sql, "USE rec; BEGIN;");
		pack_add_zones(&sql, tables->recording);
		rc = add_tables(&sql, tables, err);
	}
	if (!rc) {
		add_comments(&sql);
		buf_text(&sql, "COMMIT; DETACH packed");
		rc = pack_run(connection, &sql, err);
	}
	buf_fini(&sql);
	return rc;
}

static void remove_leftovers(const char *file)
{
	static const char *const suffixes[] = { ".wal", ".spill" };
	char path[KYMO_PATH_BYTES + 64];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", file, suffixes[i]);
		remove(path);
	}
}

static int pack_to(struct tables *tables, const char *file, struct kymo_error *err)
{
	duckdb_connection connection = NULL;
	int rc;

	if (duck.connect(tables->database, &connection) == DuckDBError)
		return error_set(err, EIO, "cannot connect to DuckDB");
	rc = write_database(tables, connection, file, err);
	duck.disconnect(&connection);
	return rc;
}

static uint64_t kept_rows(const struct recording *recording)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		rows += recording->streams[i].kept;
	return rows;
}

int tables_pack(const char *from, const char *to, void (*progress)(uint64_t done, uint64_t all),
		struct kymo_error *err)
{
	/* Only internal SQL runs here, and it has to write a file. */
	struct tables_options options = { .unsafe = true };
	struct tables *tables = NULL;
	struct atomic_file aside;
	mode_t old_mask;
	int rc;

	/* A packed file is foreign, and never opened like this. */
	if (store_kind(from, NULL) == STORE_PACKED)
		return error_set(err, EINVAL, "%s is packed already", from);
	rc = tables_open(from, &options, &tables, err);
	if (rc)
		return rc;
	if (!tables->recording) {
		tables_close(tables);
		return error_set(err, EINVAL, "%s is packed already", from);
	}
	tables->progress = progress;
	tables->progress_all = kept_rows(tables->recording);
	rc = atomic_file_name(&aside, to, err);
	/* As private as the recording; DuckDB creates files that others can read. */
	old_mask = umask(077);
	if (!rc)
		rc = pack_to(tables, aside.temporary, err);
	umask(old_mask);
	tables_close(tables);
	if (aside.temporary[0])
		remove_leftovers(aside.temporary);
	return atomic_file_end(&aside, rc, err);
}
