/*
 * Tables as files: one with --table, otherwise every table with rows, each as
 * SCHEMA.TABLE.EXTENSION in a directory that appears when it is complete. --force replaces a
 * directory only if it contains nothing but such files.
 */
#include "base/grow.h"
#include "views/export/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "tables/catalog/catalog.h"
#include "base/files/atomic_file.h"
#include "base/scratch/child_notes.h"
#include "base/scratch/scratch.h"
#include "base/files/safe_path.h"
#include "views/query/output.h"
#include "views/query/rows.h"
#include "views_sql.h"

/* ---- one table ------------------------------------------------------------------------------ */

static int select_all(struct export *export, const char *table, struct tables_result **out)
{
	const char *dot = strchr(table, '.');
	struct buf sql = { 0 };
	char schema[128];
	int rc;

	if (!dot || (size_t)(dot - table) >= sizeof(schema))
		return error_set(export->err, EINVAL,
				 "%s is not a table; name the table as schema.table, for example "
				 "trace.zones",
				 table);
	snprintf(schema, sizeof(schema), "%.*s", (int)(dot - table), table);
	buf_text(&sql, "FROM ");
	catalog_quote(&sql, schema);
	buf_char(&sql, '.');
	catalog_quote(&sql, dot + 1);
	rc = sql.failed ? error_set(export->err, ENOMEM, "out of memory for the query")
			: tables_query(export->tables, buf_get(&sql), out, export->err);
	buf_fini(&sql);
	return rc;
}

static int export_tables_write_stream(struct tables_result *result,
				      const struct output_format *format, FILE *out,
				      struct kymo_error *err)
{
	struct output_options options = { .limit = UINT64_MAX };
	struct output_count count = { 0 };

	return format->write(result, &options, out, &count, err);
}

static int export_tables_write_file(struct tables_result *result,
				    const struct output_format *format, const char *path,
				    bool force, struct kymo_error *err)
{
	struct atomic_file aside;
	int rc;

	if (format->write_file) {
		rc = atomic_file_check(path, force, err);
		return rc ? rc : format->write_file(result, path, err);
	}
	rc = atomic_file_open(&aside, path, force, err);
	if (rc)
		return rc;
	rc = export_tables_write_stream(result, format, aside.file, err);
	if (!rc)
		return atomic_file_commit(&aside, err);
	atomic_file_discard(&aside);
	return rc;
}

static int export_tables_write_table(struct export *export, const char *table, const char *format,
				     const char *path)
{
	const struct output_format *output = output_find(format);
	struct tables_result *result = NULL;
	int rc = select_all(export, table, &result);

	if (!rc && !strcmp(path, "-"))
		rc = export_tables_write_stream(result, output, stdout, export->err);
	else if (!rc)
		rc = export_tables_write_file(result, output, path, export->options->force,
					      export->err);
	tables_result_close(result);
	return rc;
}

/* ---- a directory of them -------------------------------------------------------------------- */

struct list {
	char **names;
	size_t count, room;
};

static int name_row(const struct rows *rows, void *context)
{
	struct list *list = context;

	if (!grow((void **)&list->names, &list->room, list->count, sizeof(*list->names)))
		return -ENOMEM;
	list->names[list->count] = rows_take_text(rows, 0);
	return list->names[list->count++] ? 0 : -ENOMEM;
}

static void list_fini(struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
}

static bool has_rows(struct export *export, const char *table)
{
	struct tables_result *result = NULL;
	bool some = !select_all(export, table, &result) && tables_next(result, NULL) > 0;

	tables_result_close(result);
	return some;
}

static int export_tables_fill(struct export *export, const struct export_format *format,
			      const struct list *list, const char *directory)
{
	char path[2 * KYMO_PATH_BYTES];
	int rc = 0;

	for (size_t i = 0; !rc && i < list->count; i++) {
		progress_at(&export->progress, i, list->count);
		if (!has_rows(export, list->names[i]))
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", directory, list->names[i],
			 format->extension);
		rc = export_tables_write_table(export, list->names[i], format->name, path);
	}
	return rc;
}

static bool export_tables_is_ours(const char *name)
{
	const struct export_format *format = export_find_extension(name);

	return format && format->tables && strchr(name, '.') != strrchr(name, '.');
}

/* Counts files that are not exported tables; removes the others if remove is set. */
static size_t look_through(int parent, const char *name, bool remove)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t foreign = 0;

	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!export_tables_is_ours(entry->d_name))
			foreign++;
		else if (remove)
			unlinkat(fd, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return foreign;
}

static void export_tables_remove_directory(int parent, const char *name)
{
	look_through(parent, name, true);
	unlinkat(parent, name, AT_REMOVEDIR);
}

static int check_directory(const struct export *export, const struct safe_dir *parent)
{
	const char *path = export->options->file;
	struct stat status;

	if (fstatat(parent->fd, parent->name, &status, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (!S_ISDIR(status.st_mode))
		return error_set(export->err, EEXIST,
				 "%s exists and is not a directory, which several tables need; "
				 "choose another "
				 "name, or one table with --table",
				 path);
	if (!export->options->force)
		return error_set(export->err, EEXIST, "%s exists; --force overwrites it", path);
	if (look_through(parent->fd, parent->name, false))
		return error_set(export->err, EEXIST,
				 "%s is not replaced: it contains files that are not exported "
				 "tables; choose another directory",
				 path);
	return 0;
}

static int export_tables_publish(const struct export *export, const struct safe_dir *parent,
				 const char *staged)
{
	if (!renameat(parent->fd, staged, parent->fd, parent->name))
		return 0;
	/* Not empty: exchange the two, then remove the old one. */
	if (export->options->force &&
	    !renameat2(parent->fd, staged, parent->fd, parent->name, RENAME_EXCHANGE)) {
		export_tables_remove_directory(parent->fd, staged);
		return 0;
	}
	return error_set(export->err, errno, "cannot write %s: %s", export->options->file,
			 strerror(errno));
}

/* Private until it is complete. */
static void open_to_others(const struct safe_dir *parent, const char *staged)
{
	mode_t mask = umask(0); /* there is no other way to read it */
	int fd = safe_dir_enter(parent->fd, staged);

	umask(mask);
	if (fd < 0)
		return;
	fchmod(fd, 0777 & ~mask);
	close(fd);
}

static int write_directory(struct export *export, const struct export_format *format,
			   const struct safe_dir *parent, const struct list *list)
{
	char staged[NAME_MAX + 32], path[KYMO_PATH_BYTES + NAME_MAX + 40];
	int rc, held;

	snprintf(staged, sizeof(staged), "%s" SCRATCH_MARK, parent->name);
	scratch_sweep(parent->fd, staged);
	snprintf(staged, sizeof(staged), "%s" SCRATCH_MARK "%ld", parent->name, (long)getpid());
	if (mkdirat(parent->fd, staged, 0700))
		return error_set(export->err, errno, "cannot make the directory %s%s%ld: %s",
				 export->options->file, SCRATCH_MARK, (long)getpid(),
				 strerror(errno));
	snprintf(path, sizeof(path), "%s/%s", parent->path[1] ? parent->path : "", staged);
	held = scratch_hold_folder(path);
	child_notes_file(path);
	rc = export_tables_fill(export, format, list, path);
	open_to_others(parent, staged);
	if (!rc)
		rc = export_tables_publish(export, parent, staged);
	if (rc)
		export_tables_remove_directory(parent->fd, staged);
	child_notes_drop(path);
	if (held >= 0)
		close(held);
	return rc;
}

static int export_all_tables(struct export *export, const struct export_format *format)
{
	struct kymo_error why = { 0 };
	struct list list = { 0 };
	struct safe_dir parent;
	int rc = safe_dir_parent(&parent, export->options->file, 0, &why);

	if (rc)
		return error_set(export->err, -rc, "cannot write %s: %s", export->options->file,
				 safe_dir_reason(rc, &why));
	rc = check_directory(export, &parent);
	if (!rc)
		rc = rows_each(export->tables, sql_export_tables, name_row, &list, export->err);
	if (!rc)
		rc = write_directory(export, format, &parent, &list);
	list_fini(&list);
	safe_dir_close(&parent);
	return rc;
}

int export_tables(struct export *export, const struct export_format *format)
{
	progress_begin(&export->progress, "writing", "tables");
	if (export->options->table)
		return export_tables_write_table(export, export->options->table, format->name,
						 export->options->file);
	if (!strcmp(export->options->file, "-"))
		return error_set(export->err, EINVAL,
				 "standard output takes one table; name it with --table");
	return export_all_tables(export, format);
}

const struct export_format export_parquet = {
	.name = "parquet",
	.extension = ".parquet",
	.about = "tables, a file each",
	.binary = true,
	.tables = true,
};

const struct export_format export_arrow = {
	.name = "arrow",
	.extension = ".arrows",
	.about = "tables as Arrow IPC streams",
	.binary = true,
	.tables = true,
};

const struct export_format export_csv = {
	.name = "csv",
	.extension = ".csv",
	.about = "tables, safe in a spreadsheet",
	.tables = true,
};
