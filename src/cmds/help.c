#include "cmds/cmds.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/store.h"
#include "views/term/format.h"
#include "views/term/text.h"

#define RUNNING_SHOWN 5

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

/* ---- kymo without words ---------------------------------------------------------------------- */

static struct format_text help_age(uint64_t since_unix_ns)
{
	struct timespec now;
	double ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (double)now.tv_sec * 1e9 + (double)now.tv_nsec - (double)since_unix_ns;
	return format_clock(ns > 0 ? ns : 0, true);
}

/* Returns the number of running programs. */
static size_t print_running(const struct store_entry *entries, size_t count)
{
	size_t running = 0;

	for (size_t i = 0; i < count; i++) {
		const struct store_entry *entry = &entries[i];

		if (entry->state != STORE_LIVE)
			continue;
		if (!running++)
			puts("Running now:");
		if (running <= RUNNING_SHOWN)
			text_line(stdout, "  %-8d %.40s, for %s", (int)entry->pid, entry->program,
				  help_age(entry->started_unix_ns).text);
	}
	if (running > RUNNING_SHOWN)
		printf("  and %zu more: kymo ls\n", running - RUNNING_SHOWN);
	if (!running)
		puts("No recorded program is running.");
	return running;
}

/* Entries are in the order of their start. */
static bool print_newest(const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (entries[i].state != STORE_LIVE) {
			text_line(stdout, "Newest recording: %.40s, started %s ago",
				  entries[i].program, help_age(entries[i].started_unix_ns).text);
			text_line(stdout, "  %s", entries[i].path);
			return true;
		}
	puts("There are no recordings.");
	return false;
}

static void help_next(bool running, bool recorded)
{
	puts("\nType:\n"
	     "  kymo run -- python train.py    record a program");
	if (running)
		puts("  kymo top                       watch it\n"
		     "  kymo backtrace --why PID       what does it wait for?");
	if (running || recorded)
		puts("  kymo report                    where did the time go?\n"
		     "  kymo query                     ask in SQL, with completion");
	puts("  kymo help                      all commands");
}

int help_now(void)
{
	struct store_entry *entries = NULL;
	struct kymo_error err = { 0 };
	size_t count = 0;
	bool running, recorded;

	if (store_list(&entries, &count, &err))
		return cmds_fail(NULL, &err);
	running = print_running(entries, count) > 0;
	recorded = print_newest(entries, count);
	free(entries);
	help_next(running, recorded);
	return cmds_finish(NULL);
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
