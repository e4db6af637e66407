#include "lake/lake_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/safe_path.h"
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

int lake_place_open(struct lake_place *place, const struct lake_job *job, struct kymo_error *err)
{
	struct safe_dir dir = SAFE_DIR_NONE;
	int rc = safe_dir_open(&dir, job->lake, 0, err);

	place->job = job;
	place->lake = dir.fd;
	return rc;
}

void lake_place_close(struct lake_place *place)
{
	if (place->lake >= 0)
		close(place->lake);
	place->lake = -1;
}

/* A lake is shared: its directories have the modes that the user's umask gives. */
int lake_file_directory(const struct lake_place *place, const char *schema, const char *table,
			bool make, struct kymo_error *err)
{
	struct buf name = { 0 };
	int fd = -ENOMEM;

	buf_print(&name, "%s.%s", schema, table);
	if (!name.failed)
		fd = lake_enter_table(place->lake, buf_get(&name), place->job->run, make);
	if (fd < 0)
		error_set(err, -fd, "cannot write into %s/%s/run=%s: %s", place->job->lake,
			  buf_get(&name), place->job->run,
			  fd == -ELOOP ? "a symbolic link is not followed" : strerror(-fd));
	buf_fini(&name);
	return fd;
}

const struct catalog_view *lake_file_view(const char *schema, const char *table)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcmp(catalog_views[i].schema, schema) &&
		    !strcmp(catalog_views[i].name, table))
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
	const struct catalog_view *view = lake_file_view(content->schema, content->table);

	buf_print(sql, "COPY (%s) TO ", content->query);
	catalog_quote_text(sql, part);
	buf_print(sql,
		  " (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, PARQUET_VERSION %s, "
		  "KV_METADATA {",
		  has_deltas(view) ? "v2" : "v1");
	if (content->cursors) {
		buf_text(sql, "cursors: ");
		catalog_quote_text(sql, content->cursors);
		buf_text(sql, ", ");
	}
	buf_print(sql, "kymo: '" LAKE_FOOTER "%016" PRIx64 "'})",
		  view ? catalog_lake_columns(view) : 0);
}

static int sync_file(int fd, uint64_t *bytes)
{
	struct stat status;

	if (fsync(fd) || fstat(fd, &status))
		return -errno;
	*bytes = (uint64_t)status.st_size;
	return 0;
}

static bool lake_file_exists(int directory, const char *name)
{
	return !faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* -EEXIST if the name is taken, where the file system has links. */
static int give_name(int lake, const char *part, int directory, const char *name, bool replace)
{
	if (replace)
		return renameat(lake, part, directory, name) ? -errno : 0;
	if (!linkat(lake, part, directory, name, 0)) {
		unlinkat(lake, part, 0);
		return 0;
	}
	if (errno == EEXIST || lake_file_exists(directory, name))
		return -EEXIST;
	return renameat(lake, part, directory, name) ? -errno : 0;
}

static int lake_file_publish(struct lake_place *place, const struct lake_file_content *content,
			     const char *part, int fd, uint64_t rows, struct kymo_error *err)
{
	char name[LAKE_NAME_BYTES + 16];
	uint64_t bytes = 0;
	int directory = lake_file_directory(place, content->schema, content->table, rows > 0,
					    rows ? err : NULL);
	int rc = 0;

	if (directory < 0)
		return rows ? directory : 0; /* no rows now, and none before */
	snprintf(name, sizeof(name), "%s.parquet", content->name);
	if (rows || (content->even_empty && lake_file_exists(directory, name))) {
		rc = sync_file(fd, &bytes);
		if (!rc)
			rc = give_name(place->lake, part, directory, name, content->replace);
		if (rc)
			error_set(err, -rc, "cannot write %s/%s.%s/run=%s/%s: %s", place->job->lake,
				  content->schema, content->table, place->job->run, name,
				  strerror(-rc));
		place->bytes += rc ? 0 : bytes;
		place->rows += rc ? 0 : rows;
		place->files += !rc;
	}
	close(directory);
	return rc;
}

/* A new file. What has its name is another's, or of a process of this number that was killed. */
static int make_part(const struct lake_place *place, const char *part, struct kymo_error *err)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(place->lake, part, flags, 0666);

	if (fd < 0 && errno == EEXIST && !unlinkat(place->lake, part, 0))
		fd = openat(place->lake, part, flags, 0666);
	return fd >= 0 ? fd
		       : error_set(err, errno, "cannot write %s/%s: %s", place->job->lake, part,
				   strerror(errno));
}

/* DuckDB follows links: it writes to a descriptor, not to a name. */
int lake_file_write(struct lake_place *place, const struct lake_file_content *content,
		    uint64_t *out_rows, struct kymo_error *err)
{
	char part[LAKE_NAME_BYTES + 32], target[32];
	struct buf sql = { 0 };
	uint64_t rows = 0;
	int rc = 0, fd;

	/* In the lake's own directory: a table without rows has none. */
	snprintf(part, sizeof(part), ".%s.%ld.part", content->name, (long)getpid());
	fd = make_part(place, part, err);
	if (fd < 0)
		return fd;
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	add_copy(&sql, content, target);
	if (sql.failed)
		rc = error_set(err, ENOMEM, "no memory to write into the lake");
	if (!rc)
		rc = lake_file_number(place->tables, sql.data, &rows, err);
	/* DuckDB has no error code for it. */
	if (rc && err && strstr(err->text, "No space left"))
		rc = -(err->code = ENOSPC);
	if (!rc)
		rc = lake_file_publish(place, content, part, fd, rows, err);
	unlinkat(place->lake, part, 0);
	close(fd);
	if (out_rows)
		*out_rows = rows;
	buf_fini(&sql);
	return rc;
}

void lake_file_clean(const struct lake_place *place, const char *writer)
{
	const size_t length = strlen(writer);
	int fd = openat(place->lake, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name, *end = strrchr(name, '.');

		if (name[0] == '.' && !strncmp(name + 1, writer, length) &&
		    strchr(".-", name[1 + length]) && !strcmp(end, ".part"))
			unlinkat(dirfd(dir), name, 0);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}
