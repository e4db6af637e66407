/* Lists the data files of a job, and leaves out what is not whole, not of a lake, or replaced. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "store/lake/lake_dir.h"

#define TAIL_BYTES 1024 /* of a file: DuckDB writes our text near the end of the footer */
#define FOOTER_MAX (UINT64_C(1) << 30)
#define FILES_MAX 10000000u
#define PROBLEMS_MAX 100u
#define REPLACED_MAX_BYTES (64u << 20)
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)

struct lake_lister {
	struct lake_listing *out;
	struct lake_table *table;
	size_t table_room, file_room;
	size_t problem_count;
	char directory[2 * KYMO_PATH_BYTES]; /* of the files, for messages */
};

static void lake_list_say(struct lake_lister *lister, const char *name, const char *why)
{
	lister->table->left_out = true;
	if (lister->problem_count++ < PROBLEMS_MAX)
		buf_print(&lister->out->problems, "%s/%s is left out: %s\n", lister->directory,
			  name, why);
}

/* ---- one file -------------------------------------------------------------------------------- */

/* The last of the texts in the footer, so that no text of a table stands for it. */
static const char *last_footer(const char *tail, size_t bytes)
{
	const char *found = NULL, *from = tail;
	const size_t length = sizeof(LAKE_FOOTER_ANY) - 1;

	while ((from = memmem(from, bytes - (size_t)(from - tail), LAKE_FOOTER_ANY, length))) {
		found = from;
		from += length;
	}
	return found;
}

static bool parse_hex(const char *text, const char *end, uint64_t *out)
{
	*out = 0;
	if (end - text < 16)
		return false;
	for (int i = 0; i < 16; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, text[i]);

		if (!at || !text[i])
			return false;
		*out = *out << 4 | (uint64_t)(at - digits);
	}
	return true;
}

/* NULL: a file of this version, described by *out. */
static const char *look_at_tail(const char *tail, size_t bytes, struct lake_file *out)
{
	const char *found;
	uint32_t footer;

	if (bytes < 12 || memcmp(tail + bytes - 4, "PAR1", 4) != 0)
		return "it is not a whole Parquet file";
	memcpy(&footer, tail + bytes - 8, 4);
	if (footer > FOOTER_MAX || footer > out->bytes - 12)
		return "its footer is damaged";
	found = last_footer(tail, bytes - 8);
	if (!found)
		return "it was not written by kymo";
	if (memcmp(found, LAKE_FOOTER, sizeof(LAKE_FOOTER) - 1) != 0)
		return "it was written by another version of kymo";
	if (!parse_hex(found + sizeof(LAKE_FOOTER) - 1, tail + bytes, &out->columns))
		return "its footer is damaged";
	return NULL;
}

static const char *lake_list_look(int directory, const char *name, struct lake_file *out)
{
	int fd = openat(directory, name, OPEN_FLAGS);
	char tail[TAIL_BYTES + 1], head[4];
	const char *why = NULL;
	struct stat status;
	size_t bytes;

	if (fd < 0)
		return errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size < 12) {
		close(fd);
		return S_ISREG(status.st_mode) ? "it is not a whole Parquet file"
					       : "it is not a regular file";
	}
	out->bytes = (uint64_t)status.st_size;
	bytes = out->bytes < TAIL_BYTES ? out->bytes : TAIL_BYTES;
	if (pread(fd, tail, bytes, status.st_size - (off_t)bytes) != (ssize_t)bytes ||
	    pread(fd, head, 4, 0) != 4 || memcmp(head, "PAR1", 4) != 0)
		why = "it is not a whole Parquet file";
	close(fd);
	tail[bytes] = '\0';
	return why ? why : look_at_tail(tail, bytes, out);
}

/* ---- one table ------------------------------------------------------------------------------- */

static int lake_compare_files(const void *left, const void *right)
{
	const struct lake_file *x = left, *y = right;

	return strcmp(x->name, y->name);
}

static bool is_data(const char *name)
{
	size_t length = strlen(name);

	return length > 8 && !strcmp(name + length - 8, ".parquet");
}

static void take_file(struct lake_lister *lister, int directory, const char *name)
{
	struct lake_table *table = lister->table;
	struct lake_file *file;
	const char *why;

	if (name[0] == '.' || name[0] == '_')
		return;
	if (!is_data(name) || !lake_is_plain(name) || strlen(name) >= LAKE_NAME_BYTES) {
		lake_list_say(lister, name, "it is not a file of a lake");
		return;
	}
	if (table->count >= FILES_MAX ||
	    !grow((void **)&table->files, &lister->file_room, table->count, sizeof(*file)))
		return;
	file = &table->files[table->count];
	memset(file, 0, sizeof(*file));
	snprintf(file->name, sizeof(file->name), "%s", name);
	why = lake_list_look(directory, name, file);
	/* Compacted and removed since it was listed. */
	if (why && faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return;
	if (why) {
		lake_list_say(lister, name, why);
		return;
	}
	if (!lake_name_row(name, &file->first_row))
		file->first_row = UINT64_MAX;
	table->count++;
}

static void lake_list_forget(struct lake_table *table, const char *name)
{
	struct lake_file key;
	struct lake_file *found;

	snprintf(key.name, sizeof(key.name), "%s", name);
	if (strlen(name) >= sizeof(key.name) || !table->count)
		return;
	found = bsearch(&key, table->files, table->count, sizeof(key), lake_compare_files);
	if (found) {
		found->bytes = 0;
		table->left_out = true;
	}
}

static char *read_list(int directory, const char *name)
{
	int fd = openat(directory, name, OPEN_FLAGS);
	struct stat status;
	char *text = NULL;

	if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) &&
	    status.st_size <= (off_t)REPLACED_MAX_BYTES) {
		text = calloc(1, (size_t)status.st_size + 1);
		if (text && read(fd, text, (size_t)status.st_size) != status.st_size)
			text[0] = '\0';
	}
	if (fd >= 0)
		close(fd);
	return text;
}

/* Files that a compacted one stands for may still be there: a compaction was interrupted. */
static void leave_out_replaced(struct lake_table *table, int directory, size_t listed)
{
	for (size_t i = 0; i < listed; i++) {
		char name[LAKE_NAME_BYTES + 16];
		char *text, *line, *rest;
		const char *compact = table->files[i].name;

		if (strncmp(compact, "compact-", 8) != 0)
			continue;
		snprintf(name, sizeof(name), "_replaced-%.*s", (int)strlen(compact) - 16,
			 compact + 8);
		text = rest = read_list(directory, name);
		while (rest && (line = strsep(&rest, "\n")))
			if (*line)
				lake_list_forget(table, line);
		free(text);
	}
}

/* Behind the others. */
static void set_aside_replaced(struct lake_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		struct lake_file file = table->files[i];

		if (!file.bytes)
			continue;
		table->files[i] = table->files[kept];
		table->files[kept++] = file;
	}
	table->replaced = table->count - kept;
	table->count = kept;
}

static void list_files(struct lake_lister *lister, int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		take_file(lister, dirfd(dir), entry->d_name);
	if (lister->table->count) {
		qsort(lister->table->files, lister->table->count, sizeof(*lister->table->files),
		      lake_compare_files);
		leave_out_replaced(lister->table, dirfd(dir), lister->table->count);
		set_aside_replaced(lister->table);
	}
	closedir(dir);
}

/* ---- all tables ------------------------------------------------------------------------------ */

/* SCHEMA.TABLE with plain names. */
static bool is_table(const char *name)
{
	const char *dot = strchr(name, '.');

	return lake_is_plain(name) && dot && dot > name && dot[1] && !strchr(dot + 1, '.') &&
	       dot - name < 64 && strlen(dot + 1) < 64;
}

static void list_table(struct lake_lister *lister, int lake, const char *name)
{
	struct lake_listing *out = lister->out;
	int fd;

	if (!is_table(name))
		return;
	fd = lake_enter_table(lake, name, out->job.run, false);
	if (fd == -ELOOP)
		buf_print(&out->problems, "%s is left out: it is a symbolic link\n", name);
	if (fd < 0)
		return;
	if (!grow((void **)&out->tables, &lister->table_room, out->count, sizeof(*out->tables))) {
		close(fd);
		return;
	}
	lister->table = &out->tables[out->count];
	memset(lister->table, 0, sizeof(*lister->table));
	lister->file_room = 0;
	snprintf(lister->table->schema, sizeof(lister->table->schema), "%.*s",
		 (int)strcspn(name, "."), name);
	snprintf(lister->table->name, sizeof(lister->table->name), "%s", strchr(name, '.') + 1);
	snprintf(lister->directory, sizeof(lister->directory), "%s/run=%s", name, out->job.run);
	list_files(lister, fd);
	if (lister->table->count)
		out->count++;
	else
		free(lister->table->files);
}

static int lake_compare_tables(const void *left, const void *right)
{
	const struct lake_table *x = left, *y = right;
	int order = strcmp(x->schema, y->schema);

	return order ? order : strcmp(x->name, y->name);
}

int lake_list(const char *path, struct lake_listing *out, struct kymo_error *err)
{
	struct lake_lister lister = { .out = out };
	struct dirent *entry;
	DIR *dir;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = lake_job_read(path, &out->job, err);
	if (rc)
		return rc;
	dir = opendir(out->job.lake);
	if (!dir)
		return error_set(err, errno, "cannot open the lake %s: %s", out->job.lake,
				 strerror(errno));
	while ((entry = readdir(dir)))
		list_table(&lister, dirfd(dir), entry->d_name);
	closedir(dir);
	if (lister.problem_count > PROBLEMS_MAX)
		buf_print(&out->problems, "%zu more files are left out\n",
			  lister.problem_count - PROBLEMS_MAX);
	if (out->count)
		qsort(out->tables, out->count, sizeof(*out->tables), lake_compare_tables);
	return 0;
}

void lake_listing_fini(struct lake_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->tables[i].files);
	free(listing->tables);
	buf_fini(&listing->problems);
	memset(listing, 0, sizeof(*listing));
}

const struct lake_table *lake_find(const struct lake_listing *listing, const char *schema,
				   const char *name)
{
	for (size_t i = 0; i < listing->count; i++)
		if (!strcmp(listing->tables[i].schema, schema) &&
		    !strcmp(listing->tables[i].name, name))
			return &listing->tables[i];
	return NULL;
}
