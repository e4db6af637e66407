#include "cmds/cmds.h"

#include <stdio.h>

static int print_overview(void)
{
	printf("kymo records what a program does and answers questions about it, during the\n"
	       "run and after it.\n\n");
	for (const struct cmds_command *command = cmds_table; command->name; command++)
		printf("  kymo %-10s %s\n", command->name, command->summary);
	printf("\nBegin with:\n"
	       "  kymo run -- python train.py\n"
	       "  kymo report\n"
	       "  kymo query 'FROM trace.regions ORDER BY self_ns DESC LIMIT 10'\n"
	       "\nkymo help COMMAND explains one command. A TARGET is a pid, a path, a name,\n"
	       "latest or host:port.\n");
	return cmds_finish("help");
}

/* `kymo help query` and `kymo query --help` print the same text. */
int cmd_help(int argc, char **argv)
{
	const struct cmds_command *command;
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "help", argc, argv);
	while (cmds_next(&args, &status))
		;
	if (status >= 0)
		return status;
	if (!args.word_count)
		return print_overview();
	if (args.word_count > 1)
		return cmds_wrong("help", "expected one command, got %zu", args.word_count);
	command = cmds_find(args.words[0]);
	if (!command)
		return cmds_wrong("help", "unknown command %s; kymo help lists the commands",
				  args.words[0]);
	return command->run(2, (char *[]){ args.words[0], (char[]){ "--help" }, NULL });
}
