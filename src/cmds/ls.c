#include "cmds/cmds.h"

#include <stdio.h>
#include <string.h>

#include "views/status/list.h"

int cmd_ls(int argc, char **argv)
{
	struct text_style style = text_style_of(stdout);
	struct kymo_error err = { 0 };
	const struct cmds_option *option;
	struct cmds_args args;
	bool json = false, all = false;
	int status;

	cmds_args_init(&args, "ls", argc, argv);
	while ((option = cmds_next(&args, &status))) {
		if (!strcmp(option->name, "all")) {
			all = true;
			continue;
		}
		json = !strcmp(args.value, "json");
		if (!json && strcmp(args.value, "text") != 0)
			return cmds_wrong("ls", "unknown format %s; use text or json", args.value);
	}
	if (status >= 0)
		return status;
	if (args.word_count)
		return cmds_wrong("ls", "unexpected argument %s; kymo ls lists all recordings",
				  args.words[0]);
	if (json ? list_print_json(stdout, &err) : list_print(&style, all, stdout, &err))
		return cmds_fail("ls", &err);
	return cmds_finish("ls");
}
