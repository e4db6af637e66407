/*
 * kymo completion: prints the script that a shell loads for Tab completion. The script calls this
 * command for the possible next words, so that it does not change between versions.
 */
#include "cmds/cmds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

static const struct {
	const char *shell, *script;
} scripts[] = {
	{ "bash", "_kymo() {\n"
		  "\tlocal IFS=$'\\n'\n"
		  "\tCOMPREPLY=($(kymo completion -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null "
		  "| cut -f 1))\n"
		  "}\n"
		  "complete -o default -F _kymo kymo\n" },
	{ "zsh",
	  "#compdef kymo\n"
	  "_kymo() {\n"
	  "\tlocal -a lines described\n"
	  "\tlines=(\"${(@f)$(kymo completion -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
	  "\tlines=(${lines:#})\n"
	  "\tif (( ! $#lines )); then _files; return; fi\n"
	  "\tdescribed=(\"${(@)${(@)lines//:/\\\\:}//$'\\t'/:}\")\n"
	  "\t_describe kymo described\n"
	  "}\n"
	  "compdef _kymo kymo\n" },
	{ "fish", "complete -c kymo -a '(kymo completion -- (commandline -opc)[2..] (commandline "
		  "-ct) 2>/dev/null)'\n" },
};

/* ---- words ----------------------------------------------------------------------------------- */

static void offer(const char *typed, const char *word, const char *meaning)
{
	if (!strncmp(word, typed, strlen(typed)))
		printf("%s\t%s\n", word, meaning);
}

static void offer_commands(const char *typed)
{
	for (const struct cmds_command *command = cmds_table; command->name; command++)
		offer(typed, command->name, command->summary);
}

static void offer_options(const struct cmds_option *options, const char *typed)
{
	char word[64];

	for (; options->name; options++) {
		snprintf(word, sizeof(word), "--%s", options->name);
		offer(typed, word, options->help);
	}
	offer(typed, "--help", "show this help");
}

/* The alternatives of a value such as "text|json". */
static void offer_values(const char *values, const char *typed)
{
	char copy[128], *rest = copy, *word;

	if (!values || !strchr(values, '|'))
		return;
	snprintf(copy, sizeof(copy), "%s", values);
	while ((word = strsep(&rest, "|")))
		offer(typed, word, "");
}

static void offer_targets(const char *typed)
{
	struct store_entry *entries = NULL;
	struct kymo_error err = { 0 };
	size_t count = 0;

	offer(typed, "latest", "the newest recording");
	if (store_list(&entries, &count, &err))
		return;
	for (size_t i = 0; i < count; i++) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)entries[i].pid);
		if (strpbrk(entries[i].path, "\n\t") || strpbrk(entries[i].program, "\n\t"))
			continue;
		if (entries[i].state == STORE_LIVE)
			offer(typed, pid, entries[i].program);
		if (store_called(entries[i].name, entries, count) == &entries[i] &&
		    !strpbrk(entries[i].name, "\n\t"))
			offer(typed, entries[i].name, entries[i].program);
		offer(typed, entries[i].path, entries[i].program);
	}
	free(entries);
}

static const struct cmds_option *find_option(const struct cmds_option *options, const char *word)
{
	for (; options->name; options++)
		if ((!strncmp(word, "--", 2) && !strcmp(word + 2, options->name)) ||
		    (word[0] == '-' && word[1] && word[1] == options->letter && !word[2]))
			return options;
	return NULL;
}

static bool takes_target(const struct cmds_command *command)
{
	return strstr(command->usage, "TARGET") || strstr(command->usage, "PID") ||
	       !strcmp(command->name, "compare");
}

/* The last word is the incomplete one. */
static void offer_next(char **words, size_t count)
{
	const char *typed = count ? words[count - 1] : "";
	const struct cmds_command *command = count > 1 ? cmds_find(words[0]) : NULL;
	const struct cmds_option *before;

	if (!command) {
		if (count < 2)
			offer_commands(typed);
		return;
	}
	before = count > 2 ? find_option(command->options, words[count - 2]) : NULL;
	if (before && before->value && before->value[0] != '[')
		offer_values(before->value, typed);
	else if (typed[0] == '-')
		offer_options(command->options, typed);
	else if (!strcmp(command->name, "help"))
		offer_commands(typed);
	else if (takes_target(command))
		offer_targets(typed);
}

int cmd_completion(int argc, char **argv)
{
	struct cmds_args args;
	int status;

	if (argc > 1 && !strcmp(argv[1], "--")) {
		offer_next(argv + 2, (size_t)argc - 2);
		return cmds_finish("completion");
	}
	cmds_args_init(&args, "completion", argc, argv);
	while (cmds_next(&args, &status))
		;
	if (status >= 0)
		return status;
	for (size_t i = 0; args.word_count == 1 && i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (!strcmp(args.words[0], scripts[i].shell)) {
			fputs(scripts[i].script, stdout);
			return cmds_finish("completion");
		}
	return cmds_wrong("completion", "expected one shell: bash, zsh or fish");
}
