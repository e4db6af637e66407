#include "views/export/export.h"
#include "views/term/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/spelling.h"
#include "cmds/cmds.h"
#include "store/store.h"
#include "base/files/atomic_file.h"

struct request {
	const char *target; /* NULL: latest */
	const struct export_format *format;
	struct export_options options;
	char file[KYMO_PATH_BYTES]; /* the default name */
};

/* ---- the command line ----------------------------------------------------------------------- */

static int export_choose_format(struct request *request, const char *name)
{
	const char *names[16] = { NULL }, *suggestion;
	struct buf list = { 0 };
	size_t count = 0;
	int status;

	request->format = export_find(name);
	if (request->format)
		return -1;
	for (; export_formats[count] && count < 15; count++) {
		buf_text(&list, !count ? "" : export_formats[count + 1] ? ", " : " or ");
		buf_text(&list, export_formats[count]->name);
		names[count] = export_formats[count]->name;
	}
	suggestion = spelling_word(name, names);
	status = suggestion
			 ? cmds_wrong("export", "unknown format %s; did you mean %s?", name,
				      suggestion)
			 : cmds_wrong("export", "unknown format %s; use %s", name, buf_get(&list));
	buf_fini(&list);
	return status;
}

/* -1, or the exit status. */
static int export_take_option(void *context, struct cmds_args *args,
			      const struct cmds_option *option)
{
	struct request *request = context;
	if (!strcmp(option->name, "format"))
		return export_choose_format(request, args->value);
	if (!strcmp(option->name, "output"))
		request->options.file = args->value;
	else if (!strcmp(option->name, "table"))
		request->options.table = args->value;
	else if (!strcmp(option->name, "samples"))
		request->options.samples = true;
	else if (!strcmp(option->name, "native"))
		request->options.native = true;
	else if (!strcmp(option->name, "force"))
		request->options.force = true;
	return -1;
}

static bool takes_table(const struct export_format *format)
{
	return format->tables;
}

static bool takes_samples(const struct export_format *format)
{
	return format->stacks;
}

/* pprof has samples beside zones. */
static bool takes_native(const struct export_format *format)
{
	return format->stacks || format == &export_pprof;
}

/* Names the formats that take the option. */
static int export_refuse(const char *option, bool (*takes)(const struct export_format *),
			 const struct export_format *chosen)
{
	char names[256] = "";
	int used = 0;

	for (const struct export_format *const *it = export_formats; *it; it++)
		if (takes(*it) && used >= 0 && (size_t)used < sizeof(names))
			used += snprintf(names + used, sizeof(names) - (size_t)used, "%s%s",
					 used ? ", " : "", (*it)->name);
	return cmds_wrong("export", "%s works with %s; not with %s", option, names, chosen->name);
}

/* Checks the combination of options. */
static int export_check(struct request *request)
{
	const char *file = request->options.file;
	const struct export_format *format = request->format;

	if (!format && file)
		format = export_find_extension(file);
	if (!format)
		format = export_formats[0];
	request->format = format;
	if (request->options.table && !format->tables)
		return export_refuse("--table", takes_table, format);
	if (request->options.samples && !format->stacks)
		return export_refuse("--samples", takes_samples, format);
	if (request->options.native && !takes_native(format))
		return export_refuse("--native", takes_native, format);
	if (file && !strcmp(file, "-") && format->tables && !request->options.table)
		return cmds_wrong("export",
				  "standard output takes one table; name it with --table");
	if (file && !strcmp(file, "-") && format->binary && isatty(STDOUT_FILENO))
		return cmds_wrong("export", "cannot write %s to a terminal; use -o FILE or a pipe",
				  format->name);
	return -1;
}

static int export_parse(struct request *request, int argc, char **argv)
{
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "export", argc, argv);
	status = cmds_take_all(&args, export_take_option, request);
	if (status >= 0)
		return status;
	if (args.word_count > 1)
		return cmds_wrong("export", "expected one TARGET, got %zu", args.word_count);
	request->target = args.word_count ? args.words[0] : NULL;
	return export_check(request);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* PROGRAM.EXTENSION in the working directory; PROGRAM-FORMAT for a directory of tables; the table's
   name for one table. */
static void choose_file(struct request *request, struct tables *tables)
{
	struct export export = { .tables = tables };
	char program[256];

	if (request->options.file)
		return;
	export_program(&export, program, sizeof(program));
	for (char *c = program; *c; c++)
		*c = *c == '/' ? '_' : *c;
	if (request->options.table)
		snprintf(request->file, sizeof(request->file), "%.200s%s", request->options.table,
			 request->format->extension);
	else if (request->format->tables)
		snprintf(request->file, sizeof(request->file), "%s-%s",
			 program[0] ? program : "run", request->format->name);
	else
		snprintf(request->file, sizeof(request->file), "%s%s", program[0] ? program : "run",
			 request->format->extension);
	request->options.file = request->file;
}

static bool is_directory(const struct request *request)
{
	return request->format->tables && !request->options.table;
}

static int export(struct request *request, struct kymo_error *err)
{
	struct tables *tables = NULL;
	int rc = cmds_open(request->target, &tables, err);

	if (!rc) {
		choose_file(request, tables);
		/* Checked before the work. */
		if (strcmp(request->options.file, "-") && !is_directory(request))
			rc = atomic_file_check(request->options.file, request->options.force, err);
	}
	if (!rc)
		rc = export_write(tables, request->format, &request->options, err);
	cmds_close(tables);
	return rc;
}

static int export_local(void *context)
{
	struct request *request = context;
	struct kymo_error err = { 0 };
	int status = export(request, &err) ? cmds_fail("export", &err) : cmds_finish("export");

	if (status == CMDS_OK)
		cmds_say_file(request->options.file);
	return cmds_interrupted() ? CMDS_INTERRUPTED : status;
}

int cmd_export(int argc, char **argv)
{
	struct request request = { .format = NULL };
	int status = export_parse(&request, argc, argv);

	return status >= 0 ? status : cmds_guarded("export", export_local, &request);
}
