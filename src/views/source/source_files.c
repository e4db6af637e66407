#include "views/source/source_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "collect/backtrace/own_code.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/source/source_text.h"
#include "views_sql.h"

#define FILES_MOST 200
#define TEXTS_MOST 20
#define TEXT_BYTES_MOST (1u << 20) /* of all texts in a report */

static const char *const names[SOURCE_VALUES] = {
	[SOURCE_SELF_SAMPLES] = "self_samples", [SOURCE_SAMPLES] = "samples",
	[SOURCE_SELF_NS] = "self_ns",		[SOURCE_TOTAL_NS] = "total_ns",
	[SOURCE_LINE_COUNT] = "line_count",	[SOURCE_LINE_NS] = "line_ns",
	[SOURCE_LINE_SELF_NS] = "line_self_ns", [SOURCE_CALLS] = "calls",
	[SOURCE_CALLS_NS] = "calls_ns",		[SOURCE_CALLS_SELF_NS] = "calls_self_ns",
	[SOURCE_ALLOC_BYTES] = "alloc_bytes",	[SOURCE_ALLOC_COUNT] = "alloc_count",
	[SOURCE_PEAK_BYTES] = "peak_bytes",
};

/* ---- gathering ------------------------------------------------------------------------------ */

static void source_file_fini(struct source_file *file)
{
	free(file->name);
	free(file->lines);
}

static struct source_file *add_file(struct source_files *to, char *name)
{
	if (!grow((void **)&to->list, &to->room, to->count, sizeof(*to->list)))
		return NULL;
	to->list[to->count] = (struct source_file){
		.name = name,
		.own = source_text_is_python(name) && own_code_is(name, strlen(name), to->cwd)
	};
	return &to->list[to->count++];
}

/* Rows come by file; the file of this one is the last, or a new one. Takes name. */
static struct source_file *source_file_of(struct source_files *to, char *name)
{
	struct source_file *last = to->count ? &to->list[to->count - 1] : NULL;
	bool known = last && !strcmp(last->name, name);
	struct source_file *file = known ? last : add_file(to, name);

	if (known || !file)
		free(name);
	return file;
}

/* The row of line 0 has the samples of the file. Its other values are the sums of its lines. */
static int add_line(struct source_file *file, const struct source_line *row)
{
	for (int i = 0; i < SOURCE_VALUES; i++)
		if (!row->line || (i != SOURCE_SAMPLES && i != SOURCE_TOTAL_NS))
			file->values[i] += row->values[i];
	if (!row->line)
		return 0;
	if (!grow((void **)&file->lines, &file->line_room, file->line_count, sizeof(*file->lines)))
		return -ENOMEM;
	file->lines[file->line_count++] = *row;
	return 0;
}

static int source_line_row(const struct rows *rows, void *context)
{
	struct source_line row = { .line = (uint32_t)rows_count(rows, 1) };
	char *name = rows_take_text(rows, 0);
	struct source_file *file;

	if (name && !source_text_is_source(name)) {
		free(name);
		return 0;
	}
	for (size_t i = 0; i < SOURCE_VALUES; i++)
		row.values[i] = rows_number(rows, 2 + i, 0);
	file = name ? source_file_of(context, name) : NULL;
	/* Native code is judged by its library, which only samples know, or by its zones. */
	if (file && (rows_number(rows, 2 + SOURCE_VALUES, 0) > 0 || row.values[SOURCE_CALLS] > 0))
		file->own |= !source_text_is_python(file->name);
	return file ? add_line(file, &row) : -ENOMEM;
}

/* A job has several: names without a folder are those of the first. */
static int run_row(const struct rows *rows, void *context)
{
	struct source_files *to = context;
	char host[256] = "", own[256] = "";

	gethostname(own, sizeof(own) - 1);
	rows_copy_text(rows, 2, host, sizeof(host));
	to->from_elsewhere |= host[0] && strcmp(host, own) != 0;
	if (to->cwd)
		return 0;
	to->cwd = rows_take_text(rows, 0);
	to->started_unix_ns = rows_count(rows, 1);
	return to->cwd ? 0 : -ENOMEM;
}

/* Measures of a file, the best one first. */
static const enum source_value measures[] = { SOURCE_TOTAL_NS, SOURCE_SAMPLES, SOURCE_LINE_SELF_NS,
					      SOURCE_CALLS_SELF_NS, SOURCE_ALLOC_BYTES };
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

static int source_file_by_time(const void *one, const void *other)
{
	const struct source_file *a = one, *b = other;

	if (a->own != b->own)
		return a->own ? -1 : 1;
	for (size_t i = 0; i < MEASURES; i++)
		if (a->values[measures[i]] != b->values[measures[i]])
			return a->values[measures[i]] > b->values[measures[i]] ? -1 : 1;
	return strcmp(a->name, b->name);
}

int source_files_gather(struct tables *tables, const struct rank_set *ranks,
			struct source_files *out, struct kymo_error *err)
{
	int rc;

	*out = (struct source_files){ .list = NULL };
	rc = rows_each(tables, "SELECT cwd, started_unix_ns, host FROM kymo.runs", run_row, out,
		       err);
	out->from_elsewhere = out->from_elsewhere && !tables_recording(tables);
	if (!rc && !out->cwd && !(out->cwd = strdup("")))
		rc = -ENOMEM;
	if (!rc)
		rc = rank_set_each(ranks, tables, sql_source_lines, source_line_row, out, err);
	if (rc == -ENOMEM)
		return error_set(err, ENOMEM, "out of memory for the lines of source files");
	if (out->count)
		qsort(out->list, out->count, sizeof(*out->list), source_file_by_time);
	while (out->count > FILES_MOST)
		source_file_fini(&out->list[--out->count]);
	return rc;
}

const struct source_file *source_files_find(const struct source_files *files, const char *name)
{
	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->list[i].name, name))
			return &files->list[i];
	return NULL;
}

void source_files_fini(struct source_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		source_file_fini(&files->list[i]);
	free(files->list);
	free(files->cwd);
	*files = (struct source_files){ .list = NULL };
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static void add_lines(const struct source_file *file, struct buf *out)
{
	buf_text(out, ",\"lines\":[");
	for (size_t i = 0; i < file->line_count; i++) {
		buf_print(out, "%s[%u", i ? "," : "", file->lines[i].line);
		for (int v = 0; v < SOURCE_VALUES; v++)
			buf_print(out, ",%.0f", file->lines[i].values[v]);
		buf_char(out, ']');
	}
	buf_char(out, ']');
}

static size_t add_text(const struct source_files *files, const struct source_file *file,
		       const struct source_wanted *wanted, struct buf *out)
{
	struct source_text text = { .read = false };
	const char *why = wanted->without;
	size_t bytes = 0;

	if (!why) {
		source_text_read(&text, file->name, files->cwd, files->started_unix_ns);
		why = text.text.used > wanted->text_most ? "a report has room for 1 MB of source"
							 : text.why;
	}
	buf_text(out, ",\"text\":");
	if (text.read && !why[0]) {
		bytes = text.text.used;
		json_text(out, buf_get(&text.text), bytes);
	} else {
		buf_text(out, "null");
	}
	buf_print(out, ",\"newer\":%s,\"why\":", text.newer ? "true" : "false");
	json_text(out, why, strlen(why));
	source_text_fini(&text);
	return bytes;
}

size_t source_files_json(const struct source_files *files, const struct source_file *file,
			 const struct source_wanted *wanted, struct buf *out)
{
	size_t bytes = 0;

	buf_text(out, "{\"file\":");
	json_text(out, file->name, strlen(file->name));
	buf_print(out, ",\"own\":%s", file->own ? "true" : "false");
	for (int i = 0; i < SOURCE_VALUES; i++)
		buf_print(out, ",\"%s\":%.0f", names[i], file->values[i]);
	if (wanted->lines)
		add_lines(file, out);
	if (wanted->text)
		bytes = add_text(files, file, wanted, out);
	buf_char(out, '}');
	return bytes;
}

/* A library with little of everything is not worth its bytes. */
static bool source_file_is_small(const struct source_files *files, const struct source_file *file)
{
	for (size_t i = 0; i < MEASURES; i++) {
		double most = 0;

		for (size_t k = 0; k < files->count; k++)
			if (files->list[k].values[measures[i]] > most)
				most = files->list[k].values[measures[i]];
		if (most > 0 && file->values[measures[i]] >= most / 100)
			return false;
	}
	return !file->own;
}

int source_files_document(struct tables *tables, bool without_text, struct buf *out,
			  size_t *out_texts, struct kymo_error *err)
{
	struct source_wanted wanted = { true, true, TEXT_BYTES_MOST,
					without_text ? "the report was made with --no-source"
						     : NULL };
	struct source_wanted totals = { true, true, 0, "it has less than 1 % of the time" };
	struct source_files files;
	int rc = source_files_gather(tables, NULL, &files, err);

	*out_texts = 0;
	if (files.from_elsewhere && !wanted.without)
		wanted.without = "the recording comes from another machine";
	buf_char(out, '[');
	for (size_t i = 0; !rc && i < files.count; i++) {
		bool small = !wanted.without && source_file_is_small(&files, &files.list[i]);
		size_t bytes;

		if (*out_texts >= TEXTS_MOST)
			wanted.without = "a report has the text of 20 files";
		buf_text(out, i ? ",\n" : "\n");
		bytes = source_files_json(&files, &files.list[i], small ? &totals : &wanted, out);
		wanted.text_most -= bytes;
		*out_texts += bytes > 0;
	}
	buf_char(out, ']');
	source_files_fini(&files);
	return rc;
}
