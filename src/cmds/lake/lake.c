#include "cmds/cmds.h"

#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include "cmds/lake/lake_words.h"
#include "lake/lake.h"

static const struct {
	const char *word;
	int (*run)(struct lake_request *request);
	size_t least, most; /* words after it */
	const char *usage;
} words[] = {
	{ "add", lake_words_add, 2, SIZE_MAX, "kymo lake add [OPTIONS] RECORDING... LAKE" },
	/* Started by kymo run --lake; not for people. */
	{ "follow", lake_words_follow, 2, 2, "kymo lake follow PID LAKE" },
	{ "ls", lake_words_ls, 1, 1, "kymo lake ls LAKE" },
	{ "check", lake_words_check, 1, 1, "kymo lake check LAKE/JOB" },
	{ "align", lake_words_align, 1, 1, "kymo lake align LAKE/JOB" },
	{ "compact", lake_words_compact, 1, 1, "kymo lake compact LAKE/JOB" },
	{ "rm", lake_words_rm, 1, SIZE_MAX, "kymo lake rm LAKE/JOB..." },
	{ "spark-sql", lake_words_spark_sql, 1, 1, "kymo lake spark-sql LAKE/JOB" },
};

static int lake_take_option(void *context, struct cmds_args *args, const struct cmds_option *option)
{
	struct lake_request *request = context;
	double number = 0;
	int status = -1;

	if (!strcmp(option->name, "run")) {
		request->run = args->value;
	} else if (!strcmp(option->name, "tier")) {
		if (cmds_number(args, option, LAKE_TIER_ALL, &number, &status))
			request->tier = (int)number;
	} else if (!strcmp(option->name, "ranks")) {
		if (!rank_set_read(&request->ranks, args->value))
			return cmds_wrong("lake", "--ranks needs a list such as 0,3,8-15, not %s",
					  args->value);
	} else {
		request->json = !strcmp(args->value, "json");
		if (!request->json && strcmp(args->value, "text") != 0)
			return cmds_wrong("lake", "unknown format %s; use text or json",
					  args->value);
	}
	return status;
}

int cmd_lake(int argc, char **argv)
{
	struct lake_request request = { .tier = LAKE_TIER_ALL };
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "lake", argc, argv);
	status = cmds_take_all(&args, lake_take_option, &request);
	if (status >= 0)
		return status;
	if (!args.word_count)
		return cmds_wrong(
			"lake",
			"missing word; use add, ls, check, align, compact, rm or spark-sql");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].word, args.words[0]) != 0)
			continue;
		request.words = args.words + 1;
		request.word_count = args.word_count - 1;
		if (request.word_count < words[i].least || request.word_count > words[i].most)
			return cmds_wrong("lake", "wrong number of arguments; usage: %s",
					  words[i].usage);
		return words[i].run(&request);
	}
	return cmds_wrong("lake",
			  "unknown word %s; use add, ls, check, align, compact, rm or spark-sql",
			  args.words[0]);
}
