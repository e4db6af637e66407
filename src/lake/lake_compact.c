#include "lake/lake_tidy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "lake/lake_file.h"
#include "lake/lake_plan.h"
#include "lake_sql.h"
#include "tables/catalog/catalog.h"
#include "tables/catalog/lake_columns.h"

#define MERGE_LEAST 2 /* files */
#define MERGE_MOST 2000 /* files that become one */

struct lake_merge {
	struct lake_listing *listing;
	struct lake_place place;
	struct lake_compacted *out;
	bool running; /* some process of the job */
};

/* ---- what can be merged -------------------------------------------------------------------- */

/* Rows of a file that its writer has not counted yet may be written again under its name. */
static bool lake_compact_is_counted(struct lake_merge *merge, const struct lake_table *table,
				    const struct lake_file *file)
{
	struct buf sql = { 0 };
	char writer[LAKE_NAME_BYTES], name[160];
	uint64_t at = 0;

	snprintf(writer, sizeof(writer), "%.*s", (int)(strrchr(file->name, '-') - file->name),
		 file->name);
	snprintf(name, sizeof(name), "%s.%s", table->schema, table->name);
	buf_text(&sql,
		 "SELECT coalesce(sum(next_row), 0)::BIGINT FROM kymo.flushes WHERE writer = ");
	catalog_quote_text(&sql, writer);
	buf_text(&sql, " AND table_name = ");
	catalog_quote_text(&sql, name);
	if (!sql.failed)
		lake_file_number(merge->place.tables, sql.data, &at, NULL);
	buf_fini(&sql);
	return file->first_row < at;
}

static bool can_merge(struct lake_merge *merge, const struct lake_table *table,
		      const struct lake_file *file)
{
	if (!strncmp(file->name, "compact-", 8))
		return false;
	if (file->first_row != UINT64_MAX)
		return lake_compact_is_counted(merge, table, file);
	return !merge->running;
}

/* ---- merging ------------------------------------------------------------------------------- */

static uint64_t hash_names(const struct lake_file *const *files, size_t count)
{
	uint64_t hash = LAKE_HASH_BEGIN;

	for (size_t i = 0; i < count; i++)
		hash = lake_hash_column(hash, files[i]->name, "");
	return hash;
}

/* Written before the merged file: it counts only beside that. */
static int put_replaced(int directory, const struct lake_table *table, uint64_t hash,
			const struct lake_file *const *files, size_t count, struct kymo_error *err)
{
	struct buf text = { 0 };
	char name[64];
	int rc;

	snprintf(name, sizeof(name), "_replaced-%016" PRIx64, hash);
	for (size_t i = 0; i < count; i++)
		buf_print(&text, "%s\n", files[i]->name);
	rc = text.failed ? -ENOMEM : atomic_file_put(directory, name, text.data, text.used);
	/* As readable as the data. */
	if (!rc && fchmodat(directory, name, 0644, 0))
		rc = -errno;
	if (rc)
		error_set(err, -rc, "cannot write %s of %s.%s: %s", name, table->schema,
			  table->name, strerror(-rc));
	buf_fini(&text);
	return rc;
}

/* The rows with the columns of today: a file of another version may lack some, or have more. The
   tables of a program have those of any of their files. */
static void add_merged_rows(struct buf *out, const struct lake_table *table, const char *files,
			    bool of_today)
{
	const struct catalog_view *view = lake_file_view(table->schema, table->name);

	if (of_today || !view) {
		buf_print(out,
			  "FROM read_parquet(%s, hive_partitioning = false, union_by_name = %s)",
			  files, of_today ? "false" : "true");
		return;
	}
	buf_text(out, "SELECT * REPLACE (");
	catalog_lake_casts(out, view);
	buf_text(out, ") FROM (");
	catalog_lake_nothing(out, view);
	buf_print(out,
		  " UNION ALL BY NAME FROM read_parquet(%s, hive_partitioning = false, "
		  "union_by_name = true))",
		  files);
}

static bool are_of_today(const struct lake_table *table, const struct lake_file *const *files,
			 size_t count)
{
	const struct catalog_view *view = lake_file_view(table->schema, table->name);
	bool are = view;

	for (size_t i = 0; are && i < count; i++)
		are = files[i]->columns == catalog_lake_columns(view);
	return are;
}

static int merge_files(struct lake_merge *merge, const struct lake_table *table,
		       const struct lake_file *const *files, size_t count, struct kymo_error *err)
{
	const uint64_t hash = hash_names(files, count);
	struct buf query = { 0 }, path = { 0 }, list = { 0 };
	char name[64];
	struct lake_file_content content = {
		.schema = table->schema, .table = table->name, .name = name, .replace = true
	};
	int directory = lake_file_directory(&merge->place, table->schema, table->name, false, err);
	int rc = directory < 0 ? directory
			       : put_replaced(directory, table, hash, files, count, err);

	snprintf(name, sizeof(name), "compact-%016" PRIx64, hash);
	buf_char(&list, '[');
	for (size_t i = 0; i < count; i++) {
		buf_reset(&path);
		lake_file_path(&merge->listing->job, table->schema, table->name, files[i]->name,
			       &path);
		buf_text(&list, i ? ", " : "");
		catalog_quote_text(&list, buf_get(&path));
		merge->out->bytes_before += files[i]->bytes;
	}
	buf_char(&list, ']');
	add_merged_rows(&query, table, buf_get(&list), are_of_today(table, files, count));
	content.query = buf_get(&query);
	if (!rc)
		rc = query.failed || list.failed
			     ? error_set(err, ENOMEM, "no memory to compact")
			     : lake_file_write(&merge->place, &content, NULL, err);
	for (size_t i = 0; !rc && i < count; i++)
		unlinkat(directory, files[i]->name, 0);
	if (directory >= 0)
		close(directory);
	buf_fini(&query);
	buf_fini(&path);
	buf_fini(&list);
	return rc;
}

/* What a killed compaction has left: a merged file stands for them, which only kymo knows. */
static void remove_replaced(struct lake_merge *merge, const struct lake_table *table)
{
	int directory = table->replaced ? lake_file_directory(&merge->place, table->schema,
							      table->name, false, NULL)
					: -1;

	for (size_t i = table->count; directory >= 0 && i < table->count + table->replaced; i++)
		unlinkat(directory, table->files[i].name, 0);
	if (directory >= 0)
		close(directory);
}

static int compact_table(struct lake_merge *merge, const struct lake_table *table,
			 struct kymo_error *err)
{
	const struct lake_file **files = calloc(table->count + 1, sizeof(*files));
	size_t count = 0;
	int rc = files ? 0 : error_set(err, ENOMEM, "no memory to compact");

	remove_replaced(merge, table);
	for (size_t i = 0; files && i < table->count; i++)
		if (can_merge(merge, table, &table->files[i]))
			files[count++] = &table->files[i];
	for (size_t at = 0; !rc && count - at >= MERGE_LEAST;) {
		size_t some = count - at < MERGE_MOST ? count - at : MERGE_MOST;

		rc = merge_files(merge, table, files + at, some, err);
		if (!rc)
			merge->out->files_after -= some - 1;
		at += some;
	}
	free(files);
	return rc;
}

/* How far each writer is stays with the writer. */
static bool stays(const struct lake_table *table)
{
	return !strcmp(table->schema, "kymo") &&
	       (!strcmp(table->name, "flushes") || !strcmp(table->name, "now"));
}

static int compact_all(struct lake_merge *merge, struct kymo_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < merge->listing->count; i++)
		merge->out->files_before += merge->listing->tables[i].count;
	merge->out->files_after = merge->out->files_before;
	for (size_t i = 0; !rc && i < merge->listing->count; i++)
		if (!stays(&merge->listing->tables[i]))
			rc = compact_table(merge, &merge->listing->tables[i], err);
	merge->out->bytes_after = merge->place.bytes;
	return rc;
}

static int lock_job(const struct lake_place *place, int *out, struct kymo_error *err)
{
	const struct lake_job *job = place->job;
	struct buf name = { 0 };
	int rc = 0;

	buf_print(&name, ".%s.compact", job->run);
	*out = openat(place->lake, buf_get(&name),
		      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (*out < 0)
		rc = error_set(err, errno, "cannot write %s/%s: %s", job->lake, buf_get(&name),
			       strerror(errno));
	else if (flock(*out, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		rc = error_set(err, EBUSY, "another process compacts %s/%s now", job->lake,
			       job->run);
	buf_fini(&name);
	return rc;
}

int lake_compact(const char *path, struct lake_compacted *out, struct kymo_error *err)
{
	/* Only internal SQL runs here, and it writes files. */
	const struct tables_options options = { .unsafe = true,
						.memory_limit_bytes = tables_own_memory() };
	struct lake_listing listing;
	struct lake_merge merge = { .listing = &listing, .out = out, .place.lake = -1 };
	uint64_t running = 0;
	int lock = -1, rc = lake_list(path, &listing, err);

	memset(out, 0, sizeof(*out));
	if (!rc)
		rc = lake_place_open(&merge.place, &listing.job, err);
	if (!rc)
		rc = lock_job(&merge.place, &lock, err);
	if (!rc)
		rc = tables_open(path, &options, &merge.place.tables, err);
	if (!rc)
		rc = lake_file_number(merge.place.tables, sql_running, &running, err);
	merge.running = running > 0;
	if (!rc)
		rc = compact_all(&merge, err);
	tables_close(merge.place.tables);
	lake_place_close(&merge.place);
	if (lock >= 0)
		close(lock);
	lake_listing_fini(&listing);
	return rc;
}
