/* tables.h for a build without DuckDB's header: every call fails with that reason. */
#include "tables/tables.h"

#include <errno.h>
#include <string.h>

static int absent(struct kymo_error *err)
{
	return error_set(err, ENOTSUP,
			 "cannot run SQL: this kymo was built without DuckDB; run `make` on a "
			 "machine with access to npm's registry");
}

uint64_t tables_own_memory(void)
{
	return 0;
}

int tables_library(const char **out_version, struct kymo_error *err)
{
	*out_version = "";
	return absent(err);
}

int tables_open(const char *path, const struct tables_options *options, struct tables **out,
		struct kymo_error *err)
{
	(void)path;
	(void)options;
	*out = NULL;
	return absent(err);
}

int tables_open_recording(struct recording *recording, const struct tables_options *options,
			  struct tables **out, struct kymo_error *err)
{
	(void)options;
	store_close(recording);
	*out = NULL;
	return absent(err);
}

int tables_refresh(struct tables *tables, struct kymo_error *err)
{
	(void)tables;
	return absent(err);
}

void tables_close(struct tables *tables)
{
	(void)tables;
}

void tables_limit_time(struct tables *tables, uint32_t timeout_ms)
{
	(void)tables;
	(void)timeout_ms;
}

const struct recording *tables_recording(const struct tables *tables)
{
	(void)tables;
	return NULL;
}

const char *tables_name(const struct tables *tables)
{
	(void)tables;
	return "";
}

void tables_add_problem(struct tables *tables, const char *sentence)
{
	(void)tables;
	(void)sentence;
}

const char *tables_problems(const struct tables *tables)
{
	(void)tables;
	return "";
}

void tables_interrupt(struct tables *tables)
{
	(void)tables;
}

int tables_query(struct tables *tables, const char *sql, struct tables_result **out,
		 struct kymo_error *err)
{
	(void)tables;
	(void)sql;
	*out = NULL;
	return absent(err);
}

void tables_result_close(struct tables_result *result)
{
	(void)result;
}

size_t tables_column_count(const struct tables_result *result)
{
	(void)result;
	return 0;
}

const char *tables_column_name(const struct tables_result *result, size_t column)
{
	(void)result;
	(void)column;
	return "";
}

const char *tables_column_type(const struct tables_result *result, size_t column)
{
	(void)result;
	(void)column;
	return "";
}

int64_t tables_next(struct tables_result *result, struct kymo_error *err)
{
	(void)result;
	return absent(err);
}

void tables_cell(struct tables_result *result, size_t column, size_t row, struct tables_cell *out)
{
	(void)result;
	(void)column;
	(void)row;
	memset(out, 0, sizeof(*out));
}

double tables_number(struct tables *tables, const char *sql, double fallback)
{
	(void)tables;
	(void)sql;
	return fallback;
}

void tables_keep_view(struct tables *tables, const char *schema, const char *view)
{
	(void)tables;
	(void)schema;
	(void)view;
}

int tables_write_arrow(struct tables_result *result, int fd, struct kymo_error *err)
{
	(void)result;
	(void)fd;
	return absent(err);
}

int tables_write_parquet(struct tables_result *result, const char *path, struct kymo_error *err)
{
	(void)result;
	(void)path;
	return absent(err);
}

void tables_watch(struct tables *tables, void (*progress)(uint64_t done, uint64_t all))
{
	(void)tables;
	(void)progress;
}

int tables_pack(const char *from, const char *to, void (*progress)(uint64_t done, uint64_t all),
		struct kymo_error *err)
{
	(void)from;
	(void)to;
	(void)progress;
	return absent(err);
}
