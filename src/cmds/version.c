#include "cmds/cmds.h"

#include <stdio.h>

int cmd_version(int argc, char **argv)
{
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "version", argc, argv);
	while (cmds_next(&args, &status))
		;
	if (status >= 0)
		return status;
	if (args.word_count)
		return cmds_wrong("version", "unexpected argument %s", args.words[0]);
	printf("kymo " KYMO_VERSION "\n");
	return cmds_finish("version");
}
