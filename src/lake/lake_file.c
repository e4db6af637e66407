#include "lake/lake_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tables/catalog/catalog.h"
#include "tables/catalog/lake_columns.h"

void lake_file_path(const struct lake_job *job, const char *schema, const char *table,
		    const char *name, struct buf *out)
{
	buf_print(out, "%s/%s.%s/run=%s%s%s", job->lake, schema, table, job->run, *name ? "/" : "",
		  name);
}

int lake_file_number(struct tables *tables, const char *sql, uint64_t *out, struct kymo_error *err)
{
	struct tables_result *result = NULL;
	struct tables_cell cell = { 0 };
	int64_t rows = 0;
	int rc = tables_query(tables, sql, &result, err);

	if (!rc)
		rows = tables_next(result, err);
	if (rows > 0 && out) {
		tables_cell(result, 0, 0, &cell);
		*out = cell.kind == TABLES_UNSIGNED ? cell.unsigned_integer
						    : (uint64_t)cell.integer;
	}
	tables_result_close(result);
	return rc ? rc : rows < 0 ? (int)rows : 0;
}

/* A lake is shared: its directories have the modes that the user's umask gives. */
static int lake_file_directory(const struct lake_job *job, const struct lake_file_content *content,
			       struct kymo_error *err)
{
	struct buf path = { 0 };
	int rc = 0;

	buf_print(&path, "%s/%s.%s", job->lake, content->schema, content->table);
	if (mkdir(buf_get(&path), 0777) && errno != EEXIST)
		rc = -errno;
	buf_print(&path, "/run=%s", job->run);
	if (!rc && mkdir(buf_get(&path), 0777) && errno != EEXIST)
		rc = -errno;
	if (rc)
		error_set(err, -rc, "cannot make the directory %s: %s", buf_get(&path),
			  strerror(-rc));
	buf_fini(&path);
	return rc;
}

static const struct catalog_view *lake_file_view(const struct lake_file_content *content)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcmp(catalog_views[i].schema, content->schema) &&
		    !strcmp(catalog_views[i].name, content->table))
			return &catalog_views[i];
	return NULL;
}

/* Deltas of whole numbers take a third of the space. With them DuckDB splits the bytes of doubles,
   which Spark does not read. */
static bool has_deltas(const struct catalog_view *view)
{
	for (size_t i = 0; view && i < view->column_count; i++)
		if (!strcmp(view->columns[i].type, "DOUBLE"))
			return false;
	return view;
}

/* The text for readers is the last one: they look for it near the end of the file. */
static void add_copy(struct buf *sql, const struct lake_file_content *content, const char *part)
{
	const struct catalog_view *view = lake_file_view(content);

	buf_print(sql, "COPY (%s) TO ", content->query);
	catalog_quote_text(sql, part);
	buf_print(sql, " (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION %s, KV_METADATA {",
		  has_deltas(view) ? "v2" : "v1");
	if (content->cursors) {
		buf_text(sql, "cursors: ");
		catalog_quote_text(sql, content->cursors);
		buf_text(sql, ", ");
	}
	buf_print(sql, "kymo: '" LAKE_FOOTER "%016" PRIx64 "'})",
		  view ? catalog_lake_columns(view) : 0);
}

static int sync_file(const char *path, uint64_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int rc = fd < 0 || fsync(fd) ? -errno : 0;
	struct stat status;

	*bytes = fd >= 0 && !fstat(fd, &status) ? (uint64_t)status.st_size : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* -EEXIST if the name is taken, where the file system has links. */
static int give_name(const char *part, const char *path, bool replace)
{
	if (replace)
		return rename(part, path) ? -errno : 0;
	if (!link(part, path)) {
		unlink(part);
		return 0;
	}
	if (errno == EEXIST || !access(path, F_OK))
		return -EEXIST;
	return rename(part, path) ? -errno : 0;
}

static int lake_file_publish(struct lake_place *place, const struct lake_file_content *content,
			     const char *part, uint64_t rows, struct kymo_error *err)
{
	struct buf path = { 0 };
	uint64_t bytes = 0;
	int rc = 0;

	lake_file_path(place->job, content->schema, content->table, content->name, &path);
	buf_text(&path, ".parquet");
	if (rows || (content->even_empty && !access(buf_get(&path), F_OK))) {
		rc = sync_file(part, &bytes);
		if (!rc)
			rc = lake_file_directory(place->job, content, NULL);
		if (!rc)
			rc = give_name(part, buf_get(&path), content->replace);
		if (rc)
			error_set(err, -rc, "cannot write %s: %s", buf_get(&path), strerror(-rc));
		place->bytes += rc ? 0 : bytes;
		place->rows += rc ? 0 : rows;
		place->files += !rc;
	}
	buf_fini(&path);
	return rc;
}

int lake_file_write(struct lake_place *place, const struct lake_file_content *content,
		    uint64_t *out_rows, struct kymo_error *err)
{
	struct buf part = { 0 }, sql = { 0 };
	uint64_t rows = 0;
	int rc = 0;

	/* In the lake's own directory: a table without rows has none. */
	buf_print(&part, "%s/.%s.%ld.part", place->job->lake, content->name, (long)getpid());
	add_copy(&sql, content, buf_get(&part));
	if (sql.failed || part.failed)
		rc = error_set(err, ENOMEM, "no memory to write into the lake");
	if (!rc)
		rc = lake_file_number(place->tables, sql.data, &rows, err);
	/* DuckDB has no error code for it. */
	if (rc && err && strstr(err->text, "No space left"))
		rc = -(err->code = ENOSPC);
	if (!rc)
		rc = lake_file_publish(place, content, buf_get(&part), rows, err);
	unlink(buf_get(&part));
	if (out_rows)
		*out_rows = rows;
	buf_fini(&part);
	buf_fini(&sql);
	return rc;
}

void lake_file_clean(const struct lake_job *job, const char *writer)
{
	const size_t length = strlen(writer);
	DIR *dir = opendir(job->lake);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name, *end = strrchr(name, '.');

		if (name[0] == '.' && !strncmp(name + 1, writer, length) &&
		    strchr(".-", name[1 + length]) && !strcmp(end, ".part"))
			unlinkat(dirfd(dir), name, 0);
	}
	if (dir)
		closedir(dir);
}
