/*
 * probing: the command line of the Probing profiler, for existing scripts. It translates arguments
 * and executes kymo. Commands that would run code inside the program are refused.
 *
 *	probing [-t] ENDPOINT COMMAND [ARGUMENTS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "become.h"

enum { FAILED = 1, WRONG_USE = 2 };

static const struct {
	const char *word;
	const char *command; /* of kymo; NULL: refused */
	int without_target; /* kymo's command takes no target */
	const char *about; /* or the reason for the refusal */
} commands[] = {
	{ "list", "ls", 1, "list running programs and recordings (kymo ls)" },
	{ "config", "config", 0, "read or change settings (kymo config)" },
	{ "query", "query", 0, "query with SQL (kymo query)" },
	{ "backtrace", "backtrace", 0, "show the stacks of all threads (kymo backtrace)" },
	{ "inject", "attach", 0, "record from outside, without injection (kymo attach)" },
	{ "eval", NULL, 0, "kymo never runs code inside the program; use query or backtrace" },
	{ "repl", NULL, 0, "kymo never runs code inside the program; use query or backtrace" },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help(void)
{
	puts("usage: probing [-t] ENDPOINT COMMAND [ARGUMENTS]\n"
	     "\nThe command line of Probing for kymo. ENDPOINT is a pid or host:port of a\n"
	     "kymo serve.\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-10s %s%s\n", commands[i].word,
		       commands[i].command ? "" : "refused: ", commands[i].about);
	return fflush(stdout) ? FAILED : 0;
}

static int probing_find(const char *word)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].word, word))
			return (int)i;
	return -1;
}

static int probing_run(int command, char *endpoint, int argc, char **argv)
{
	char **words = calloc((size_t)argc + 4, sizeof(*words));
	size_t count = 0;

	if (!words)
		return FAILED;
	words[count++] = (char[]){ "kymo" };
	words[count++] = (char *)commands[command].command;
	if (!commands[command].without_target)
		words[count++] = endpoint;
	memcpy(words + count, argv, (size_t)argc * sizeof(*words));
	become_kymo("probing", words);
	free(words);
	return FAILED;
}

static int probing_answer(int command, char *endpoint, int argc, char **argv)
{
	if (!commands[command].command) {
		fprintf(stderr, "probing: %s is refused: %s\n", commands[command].word,
			commands[command].about);
		return FAILED;
	}
	if (!endpoint && !commands[command].without_target) {
		fprintf(stderr,
			"probing: no endpoint given; use probing ENDPOINT %s, with a pid or "
			"host:port\n",
			commands[command].word);
		return WRONG_USE;
	}
	return probing_run(command, endpoint, argc, argv);
}

int main(int argc, char **argv)
{
	char *endpoint = NULL;
	int at = 1, command;

	if (at < argc && (!strcmp(argv[at], "-h") || !strcmp(argv[at], "--help")))
		return help();
	if (at < argc && (!strcmp(argv[at], "-t") || !strcmp(argv[at], "--target")))
		at++;
	if (at < argc && probing_find(argv[at]) < 0)
		endpoint = argv[at++];
	command = at < argc ? probing_find(argv[at]) : -1;
	if (command >= 0)
		return probing_answer(command, endpoint, argc - at - 1, argv + at + 1);
	if (at < argc)
		fprintf(stderr, "probing: unknown command %s; probing --help lists the commands\n",
			argv[at]);
	else
		fprintf(stderr, "probing: no command given; probing --help lists the commands\n");
	return WRONG_USE;
}
