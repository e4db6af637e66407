/* Writes a result as a Parquet file. DuckDB writes it, but the session of the query has no
   access to files. A second instance therefore reads the rows through a table function, chunk by
   chunk, and runs one COPY. */
#include "tables/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "tables/catalog/catalog.h"
#include "tables/scan/cell.h"
#include "tables/scan/table_function.h"

/* The source of kymo_rows(); one thread reads at a time. */
struct feed {
	struct tables_result *result;
	struct kymo_error err;
	int rc;
};

static void feed_bind(duckdb_bind_info info)
{
	struct feed *feed = duck.bind_get_extra_info(info);

	for (size_t i = 0; i < feed->result->column_count; i++)
		duck.bind_add_result_column(info, feed->result->columns[i].name,
					    feed->result->columns[i].type);
}

static void feed_init(duckdb_init_info info)
{
	duck.init_set_max_threads(info, 1);
}

static void feed_function(duckdb_function_info info, duckdb_data_chunk output)
{
	struct feed *feed = duck.function_get_extra_info(info);
	int64_t count = tables_next(feed->result, &feed->err);

	if (count < 0) {
		feed->rc = (int)count;
		duck.function_set_error(info, feed->err.text);
		return;
	}
	for (size_t i = 0; count && i < feed->result->column_count; i++)
		duck.vector_reference_vector(duck.data_chunk_get_vector(output, i),
					     duck.data_chunk_get_vector(feed->result->chunk, i));
	duck.data_chunk_set_size(output, (idx_t)count);
}

static int register_feed(duckdb_connection connection, struct feed *feed, struct kymo_error *err)
{
	const struct table_function function = { .name = "kymo_rows",
						 .extra = feed,
						 .bind = feed_bind,
						 .init = feed_init,
						 .emit = feed_function };

	return table_function_register(connection, duck.create_table_function(), &function, err);
}

static int copy_out(duckdb_connection connection, struct feed *feed, const char *file,
		    struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc = register_feed(connection, feed, err);

	if (rc)
		return rc;
	buf_text(&sql, "COPY (FROM kymo_rows()) TO ");
	catalog_quote_text(&sql, file);
	buf_text(&sql, " (FORMAT parquet, COMPRESSION zstd)");
	rc = sql.failed ? error_set(err, ENOMEM, "no memory for the query")
			: duck_run(connection, sql.data, "cannot write the Parquet file", err);
	buf_fini(&sql);
	/* The error of the query explains more than that of the COPY. */
	if (rc && feed->rc)
		rc = error_set(err, -feed->rc, "%s", feed->err.text);
	return rc;
}

static int parquet_write_file(struct feed *feed, const char *file, struct kymo_error *err)
{
	duckdb_database database = NULL;
	duckdb_connection connection = NULL;
	char *why = NULL;
	int rc;

	if (duck.open_ext(NULL, &database, NULL, &why) == DuckDBError) {
		rc = error_set(err, EIO, "cannot start DuckDB: %s", why ? why : "no reason given");
		duck.free(why);
		return rc;
	}
	if (duck.connect(database, &connection) == DuckDBError)
		rc = error_set(err, EIO, "cannot connect to DuckDB");
	else
		rc = copy_out(connection, feed, file, err);
	duck.disconnect(&connection);
	duck.close(&database);
	return rc;
}

int tables_write_parquet(struct tables_result *result, const char *path, struct kymo_error *err)
{
	struct feed feed = { .result = result };
	struct atomic_file aside;
	int rc;

	if (!result->column_count)
		return error_set(err, EINVAL,
				 "cannot write a Parquet file: the query returns no columns");
	rc = atomic_file_name(&aside, path, err);
	if (!rc)
		rc = parquet_write_file(&feed, aside.temporary, err);
	return atomic_file_end(&aside, rc, err);
}
