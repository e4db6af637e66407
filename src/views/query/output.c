#include "views/query/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch/child_notes.h"
#include "base/scratch/scratch.h"
#include "views/term/format.h"

#define FLUSH_BYTES 65536

bool output_is_number(const char *type)
{
	static const char *const types[] = { "TINYINT", "SMALLINT", "INTEGER",	 "BIGINT",
					     "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
					     "UBIGINT", "UHUGEINT", "FLOAT",	 "DOUBLE",
					     "DECIMAL" };
	size_t bytes = strcspn(type, "(");

	if (strchr(type, '['))
		return false; /* a list of them */
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i]) == bytes && !strncmp(types[i], type, bytes))
			return true;
	return false;
}

void output_cell(struct buf *out, const struct tables_cell *cell)
{
	char digits[32];

	switch (cell->kind) {
	case TABLES_NULL: break;
	case TABLES_BOOL: buf_text(out, cell->integer ? "true" : "false"); break;
	case TABLES_INTEGER:
		snprintf(digits, sizeof(digits), "%" PRId64, cell->integer);
		buf_text(out, digits);
		break;
	case TABLES_UNSIGNED:
		snprintf(digits, sizeof(digits), "%" PRIu64, cell->unsigned_integer);
		buf_text(out, digits);
		break;
	case TABLES_DOUBLE: buf_text(out, format_double(cell->real).text); break;
	case TABLES_TEXT:
	case TABLES_JSON: buf_add(out, cell->text, cell->text_bytes); break;
	}
}

int output_flush(struct buf *buf, FILE *out, bool all, struct kymo_error *err)
{
	if (buf->failed)
		return error_set(
			err, ENOMEM,
			"out of memory while writing the result; select less, or use --limit");
	if (buf->used < FLUSH_BYTES && !all)
		return 0;
	errno = 0;
	/* not foreign: the formats escape what they add */
	if (fwrite(buf->data ? buf->data : "", 1, buf->used, out) < buf->used ||
	    (all && fflush(out)))
		return error_set(err, errno ? errno : EIO, "cannot write the result: %s",
				 strerror(errno));
	buf_reset(buf);
	return 0;
}

/* ---- Arrow and Parquet ---------------------------------------------------------------------- */

static int arrow_write(struct tables_result *result, const struct output_options *options,
		       FILE *out, struct output_count *count, struct kymo_error *err)
{
	(void)options;
	(void)count;
	return tables_write_arrow(result, fileno(out), err);
}

static int output_copy_file(int fd, FILE *out, struct kymo_error *err)
{
	char bytes[FLUSH_BYTES];
	ssize_t count;

	while ((count = read(fd, bytes, sizeof(bytes))) > 0) {
		errno = 0;
		/* not foreign: a binary format, refused on a terminal */
		if (fwrite(bytes, 1, (size_t)count, out) < (size_t)count)
			return error_set(err, errno ? errno : EIO, "cannot write the result: %s",
					 strerror(errno));
	}
	if (count < 0)
		return error_set(err, errno, "cannot read back the temporary Parquet file: %s",
				 strerror(errno));
	return fflush(out) ? error_set(err, errno, "cannot write the result: %s", strerror(errno))
			   : 0;
}

/* A Parquet file is not written in order, so it cannot go directly into a pipe. */
static int parquet_write(struct tables_result *result, const struct output_options *options,
			 FILE *out, struct output_count *count, struct kymo_error *err)
{
	const char *temporary = getenv("TMPDIR");
	char directory[512], path[sizeof(directory) + 16];
	int rc, held, fd = -1;

	(void)options;
	(void)count;
	temporary = temporary && *temporary ? temporary : "/tmp";
	scratch_sweep_path(temporary, "kymo-parquet-");
	snprintf(directory, sizeof(directory), "%s/kymo-parquet-XXXXXX", temporary);
	if (!mkdtemp(directory))
		return error_set(
			err, errno,
			"cannot make a temporary directory %s: %s; set TMPDIR, or use -o FILE",
			directory, strerror(errno));
	held = scratch_hold_folder(directory);
	child_notes_file(directory);
	snprintf(path, sizeof(path), "%s/result", directory);
	rc = tables_write_parquet(result, path, err);
	if (!rc) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			rc = error_set(err, errno, "cannot read back %s: %s", path,
				       strerror(errno));
	}
	/* Removed before the copy, which SIGPIPE may end. */
	unlink(path);
	rmdir(directory);
	child_notes_drop(directory);
	if (held >= 0)
		close(held);
	if (!rc)
		rc = output_copy_file(fd, out, err);
	if (fd >= 0)
		close(fd);
	return rc;
}

const struct output_format output_formats[] = {
	{ "table", false, true, output_table_write, NULL },
	{ "json", false, false, output_json_write, NULL },
	{ "csv", false, false, output_csv_write, NULL },
	{ "arrow", true, false, arrow_write, NULL },
	{ "parquet", true, false, parquet_write, tables_write_parquet },
	{ NULL, false, false, NULL, NULL },
};

const struct output_format *output_find(const char *name)
{
	for (const struct output_format *format = output_formats; format->name; format++)
		if (!strcmp(format->name, name))
			return format;
	return NULL;
}
