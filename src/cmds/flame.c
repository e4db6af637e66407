/* kymo flame: a flame graph in one command, as a picture or on the terminal. */
#include <string.h>

#include "cmds/cmds.h"
#include "views/export/export.h"

struct flame {
	const char *target; /* NULL: latest */
	struct export_options options;
};

static int flame_take_option(void *context, struct cmds_args *args,
			     const struct cmds_option *option)
{
	struct flame *flame = context;

	if (!strcmp(option->name, "output"))
		flame->options.file = args->value;
	else if (!strcmp(option->name, "samples"))
		flame->options.samples = true;
	else if (!strcmp(option->name, "native"))
		flame->options.native = flame->options.samples = true;
	else if (!strcmp(option->name, "force"))
		flame->options.force = true;
	return -1;
}

static int flame_write(struct flame *flame, struct kymo_error *err)
{
	const struct export_format *format = flame->options.file ? &export_svg : &export_flame_text;
	struct tables *tables = NULL;
	int rc = cmds_open(flame->target, &tables, err);

	if (!flame->options.file)
		flame->options.file = "-";
	if (!rc)
		rc = export_write(tables, format, &flame->options, err);
	cmds_close(tables);
	return rc;
}

/* In a child; see guard.h. */
static int flame_in_child(void *context)
{
	struct flame *flame = context;
	struct kymo_error err = { 0 };
	bool file = flame->options.file && strcmp(flame->options.file, "-");
	int status = flame_write(flame, &err) ? cmds_fail("flame", &err) : cmds_finish("flame");

	if (status == CMDS_OK && file)
		cmds_say_file(flame->options.file);
	return status;
}

int cmd_flame(int argc, char **argv)
{
	struct flame flame = { .target = NULL };
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "flame", argc, argv);
	status = cmds_take_all(&args, flame_take_option, &flame);
	if (status >= 0)
		return status;
	if (args.word_count > 1)
		return cmds_wrong("flame", "expected one TARGET, got %zu", args.word_count);
	flame.target = args.word_count ? args.words[0] : NULL;
	return cmds_guarded("flame", flame_in_child, &flame);
}
