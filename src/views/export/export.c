#include "views/export/export.h"

#include <errno.h>
#include <string.h>

#include "base/files/atomic_file.h"
#include "views/query/output.h"
#include "views/query/rows.h"
#include "views/timeline/sampled_zones.h"

#define EXPORT_ROW(word) &export_##word
#define COMMA ,
const struct export_format *const export_formats[] = { EXPORT_FORMATS(EXPORT_ROW, COMMA), NULL };

const struct export_format *export_find(const char *name)
{
	for (size_t i = 0; export_formats[i]; i++)
		if (!strcmp(export_formats[i]->name, name))
			return export_formats[i];
	return NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes > end_bytes && !strcmp(text + bytes - end_bytes, end);
}

/* The longest extension that matches: .speedscope.json is not a Chrome trace. */
const struct export_format *export_find_extension(const char *file)
{
	const struct export_format *best = NULL;

	for (size_t i = 0; export_formats[i]; i++) {
		const char *extension = export_formats[i]->extension;

		if (ends_with(file, extension) &&
		    (!best || strlen(extension) > strlen(best->extension)))
			best = export_formats[i];
	}
	return best;
}

int export_flush(struct export *export, bool all)
{
	return output_flush(&export->buf, export->out, all, export->err);
}

int export_walk(struct export *export, const struct zone_walk_visitor *visitor, bool samples)
{
	struct zone_walk walk = { .tables = export->tables,
				  .visitor = visitor,
				  .context = export,
				  .frames = &export->frames,
				  .progress = &export->progress,
				  .samples = samples && export->unmarked,
				  .err = export->err };

	return zone_walk_run(&walk);
}

struct program {
	char *out;
	size_t bytes;
};

static int program_row(const struct rows *rows, void *context)
{
	struct program *program = context;

	rows_copy_text(rows, 0, program->out, program->bytes);
	return 0;
}

void export_program(struct export *export, char *out, size_t out_bytes)
{
	struct program program = { out, out_bytes };

	out[0] = '\0';
	rows_each(export->tables, "SELECT program FROM kymo.runs LIMIT 1", program_row, &program,
		  NULL);
}

const char *export_samples_word(struct export *export)
{
	bool python = !export->options->native &&
		      tables_number(export->tables, "SELECT count(*) FROM python.samples", 0) > 0;

	return python ? "Python" : "native";
}

static int export_write_aside(struct export *export, const struct export_format *format)
{
	struct atomic_file aside;
	int rc = atomic_file_open(&aside, export->options->file, export->options->force,
				  export->err);

	if (rc)
		return rc;
	export->out = aside.file;
	rc = format->write(export);
	if (!rc)
		return atomic_file_commit(&aside, export->err);
	atomic_file_discard(&aside);
	return rc;
}

static int export_write_all(struct export *export, const struct export_format *format)
{
	if (format->tables)
		return export_tables(export, format);
	if (strcmp(export->options->file, "-"))
		return export_write_aside(export, format);
	export->out = stdout;
	return format->write(export);
}

int export_write(struct tables *tables, const struct export_format *format,
		 const struct export_options *options, struct kymo_error *err)
{
	struct export_options chosen = *options;
	struct export export = { .tables = tables, .options = &chosen, .err = err };
	int rc;

	export.unmarked = !format->tables && sampled_zones_wanted(tables);
	if (format->stacks && (export.unmarked || chosen.native))
		chosen.samples = true;
	progress_begin(&export.progress, "writing", "zones");
	rc = export_write_all(&export, format);
	progress_end(&export.progress);
	name_table_fini(&export.frames);
	buf_fini(&export.buf);
	return rc;
}
