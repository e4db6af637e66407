/*
 * kymo completion: prints the script that a shell loads for Tab completion. The script calls this
 * command for the possible next words, so that it does not change between versions.
 */
#include "cmds/cmds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cmds/completion/shell_words.h"
#include "cmds/completion/sql_words.h"
#include "store/store.h"
#include "views/term/text.h"

/*
 * Names of recordings are data; a file from another machine has any name. bash inserts what it is
 * given, so it gets quoted words; zsh and fish quote what they insert.
 */
static const struct {
	const char *shell, *script;
} scripts[] = {
	{ "bash", "_kymo() {\n"
		  "\tlocal words\n"
		  "\tCOMPREPLY=()\n"
		  "\twords=$(kymo completion bash -- \"${COMP_LINE:0:COMP_POINT}\" \"$2\" "
		  "2>/dev/null)\n"
		  "\tif [[ $words ]]; then mapfile -t COMPREPLY <<<\"$words\"; fi\n"
		  "}\n"
		  "complete -o default -F _kymo kymo\n" },
	{ "zsh", "#compdef kymo\n"
		 "_kymo() {\n"
		 "\tlocal -a lines found shown\n"
		 "\tlines=(\"${(@f)$(kymo completion zsh -- \"${(@Q)words[2,CURRENT-1]}\" "
		 "\"$PREFIX\" 2>/dev/null)}\")\n"
		 "\tlines=(${lines:#})\n"
		 "\tif (( ! $#lines )); then _files; return; fi\n"
		 "\tfound=(\"${(@Q)lines%%$'\\t'*}\")\n"
		 "\tshown=(\"${(@)lines#*$'\\t'}\")\n"
		 "\tcompadd -l -d shown -a -- found\n"
		 "}\n"
		 "compdef _kymo kymo\n" },
	{ "fish", "complete -c kymo -a '(kymo completion fish -- (commandline -opc)[2..] "
		  "(commandline -ct) 2>/dev/null | string split0)'\n" },
};

/* ---- words ---------------------------------------------------------------------------------- */

enum shell { SHELL_OLD, SHELL_BASH, SHELL_ZSH, SHELL_FISH };

/* One press of Tab. */
struct asked {
	enum shell shell;
	const char *typed; /* the incomplete word, without its quotes */
	/* bash keeps this many bytes of the word, with these quotes open, and replaces the rest */
	size_t kept;
	enum shell_quotes open;
};

/* zsh and fish compare by themselves, with rules of their own. */
static bool fits(const struct asked *asked, const char *word)
{
	return asked->shell == SHELL_ZSH || asked->shell == SHELL_FISH ||
	       !strncmp(word, asked->typed, strlen(asked->typed));
}

static void add_bash(struct buf *line, const struct asked *asked, const char *word)
{
	shell_words_quote(line, word + asked->kept, asked->open);
	buf_char(line, '\n');
}

/* The word, and the text of the list. */
static void add_zsh(struct buf *line, const char *word, const char *meaning)
{
	shell_words_quote(line, word, SHELL_NONE);
	buf_char(line, '\t');
	text_visible(line, word, strlen(word));
	if (*meaning)
		buf_text(line, "  -- ");
	text_visible(line, meaning, strlen(meaning));
	buf_char(line, '\n');
}

/* Ended by NUL, because a name may have several lines; a tab ends the word. */
static void add_fish(struct buf *line, const char *word, const char *meaning)
{
	if (strchr(word, '\t'))
		return;
	buf_add(line, word, strlen(word));
	buf_char(line, '\t');
	text_visible(line, meaning, strlen(meaning));
	buf_char(line, '\0');
}

/* Scripts of older versions insert words without quotes. */
static void add_old(struct buf *line, const char *word, const char *meaning)
{
	if (!shell_words_inert(word))
		return;
	buf_add(line, word, strlen(word));
	buf_char(line, '\t');
	text_visible(line, meaning, strlen(meaning));
	buf_char(line, '\n');
}

static void offer(const struct asked *asked, const char *word, const char *meaning)
{
	struct buf line = { 0 };

	if (!fits(asked, word))
		return;
	switch (asked->shell) {
	case SHELL_OLD: add_old(&line, word, meaning); break;
	case SHELL_BASH: add_bash(&line, asked, word); break;
	case SHELL_ZSH: add_zsh(&line, word, meaning); break;
	case SHELL_FISH: add_fish(&line, word, meaning); break;
	}
	fwrite(buf_get(&line), 1, line.used, stdout); /* not foreign: for a shell, quoted */
	buf_fini(&line);
}

static void offer_commands(const struct asked *asked)
{
	for (const struct cmds_command *command = cmds_table; command->name; command++)
		offer(asked, command->name, command->summary);
}

static void offer_options(const struct cmds_option *options, const struct asked *asked)
{
	char word[64];

	for (; options->name; options++) {
		snprintf(word, sizeof(word), "--%s", options->name);
		offer(asked, word, options->help);
	}
	offer(asked, "--help", "show this help");
}

/* Stands for a value of the user: RULES, N. */
static bool is_placeholder(const char *word)
{
	return !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

/* The alternatives of a value such as "text|json". */
static void offer_values(const char *values, const struct asked *asked)
{
	char copy[128], *rest = copy, *word;

	if (!values || !strchr(values, '|'))
		return;
	snprintf(copy, sizeof(copy), "%s", values);
	while ((word = strsep(&rest, "|")))
		if (!is_placeholder(word))
			offer(asked, word, "");
}

/* A name that begins with - would be an option; the path means the same recording. */
static void offer_recording(const struct asked *asked, const struct store_entry *entry, bool named)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)entry->pid);
	if (entry->state == STORE_LIVE)
		offer(asked, pid, entry->program);
	if (named && entry->name[0] != '-')
		offer(asked, entry->name, entry->program);
	offer(asked, entry->path, entry->program);
}

static void offer_targets(const struct asked *asked)
{
	struct store_entry *entries = NULL;
	struct kymo_error err = { 0 };
	size_t count = 0;

	offer(asked, "latest", "the newest recording");
	if (store_list(&entries, &count, &err))
		return;
	for (size_t i = 0; i < count; i++)
		offer_recording(asked, &entries[i],
				store_called(entries[i].name, entries, count) == &entries[i]);
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

/* ---- SQL ------------------------------------------------------------------------------------- */

/* Words of kymo query before the incomplete one that are no options and no values of them. Returns
   their number; *target: the first. */
static size_t query_words(const struct cmds_command *query, const char *const *words, size_t count,
			  const char **target)
{
	size_t found = 0;

	for (size_t i = 1; i < count; i++) {
		const struct cmds_option *option = find_option(query->options, words[i]);

		if (option && option->value)
			i++;
		else if (words[i][0] != '-' && !found++)
			*target = words[i];
	}
	return found;
}

struct sql_word {
	const struct asked *asked;
	size_t begin; /* of the incomplete word in the SQL */
};

/* The shell replaces its whole word, which is all of the SQL. */
static void offer_sql_word(void *context, const char *word, const char *meaning)
{
	const struct sql_word *to = context;
	struct buf whole = { 0 };

	buf_add(&whole, to->asked->typed, to->begin);
	buf_text(&whole, word);
	if (!whole.failed)
		offer(to->asked, buf_get(&whole), meaning);
	buf_fini(&whole);
}

static void offer_sql(const struct asked *asked, const char *target)
{
	struct sql_word to = { asked, sql_words_begin(asked->typed) };
	struct sql_words *words = sql_words_open(target);

	if (words)
		sql_words_offer(words, asked->typed, "", offer_sql_word, &to);
	sql_words_close(words);
}

/* True: the incomplete word is SQL. */
static bool offered_sql(const struct asked *asked, const struct cmds_command *command,
			const char *const *words, size_t count)
{
	const char *target = NULL;
	size_t found;

	if (strcmp(command->name, "query") != 0)
		return false;
	found = query_words(command, words, count, &target);
	if (found > 1 || (!found && !strpbrk(asked->typed, " \t\n")))
		return found > 1;
	offer_sql(asked, target);
	return true;
}

/* words: those before the incomplete one, without `kymo`. */
static void offer_next(const struct asked *asked, const char *const *words, size_t count)
{
	const struct cmds_command *command = count ? cmds_find(words[0]) : NULL;
	const struct cmds_option *before;

	if (!command) {
		if (!count)
			offer_commands(asked);
		return;
	}
	before = count > 1 ? find_option(command->options, words[count - 1]) : NULL;
	if (before && before->value && before->value[0] != '[')
		offer_values(before->value, asked);
	else if (asked->typed[0] == '-')
		offer_options(command->options, asked);
	else if (!strcmp(command->name, "help"))
		offer_commands(asked);
	else if (!offered_sql(asked, command, words, count) && takes_target(command))
		offer_targets(asked);
}

/* ---- bash ----------------------------------------------------------------------------------- */

#define WORDS_MOST 64

/* The words of a line without their quotes; the last one is incomplete, and begins at *raw. */
struct bash_line {
	struct buf words[WORDS_MOST];
	size_t count;
	const char *raw;
};

static void read_line(struct bash_line *line, const char *text)
{
	const char *end = text + strlen(text);
	enum shell_quotes open;

	do {
		text += strspn(text, " \t\n");
		line->raw = text;
		text = shell_words_read(text, end, &line->words[line->count++], &open);
	} while (text < end && line->count < WORDS_MOST);
}

/* What bash replaces is the end of the word: from the quotes, : or = on. */
static bool find_kept(struct asked *asked, const struct bash_line *line, const char *replaced)
{
	size_t raw = strlen(line->raw), bytes = strlen(replaced);
	struct buf kept = { 0 };

	if (bytes > raw || strcmp(line->raw + raw - bytes, replaced) != 0)
		return false;
	shell_words_read(line->raw, line->raw + raw - bytes, &kept, &asked->open);
	asked->kept = kept.used;
	buf_fini(&kept);
	return asked->kept <= strlen(asked->typed);
}

/* text: the line up to the cursor; replaced: its end, as bash gives it to the function. */
static void answer_bash(const char *text, const char *replaced)
{
	struct bash_line line = { .raw = "" };
	struct asked asked = { .shell = SHELL_BASH };
	const char *words[WORDS_MOST] = { "" };

	read_line(&line, text);
	for (size_t i = 0; i < line.count; i++)
		words[i] = buf_get(&line.words[i]);
	asked.typed = line.count ? words[line.count - 1] : "";
	if (line.count > 1 && line.count < WORDS_MOST && find_kept(&asked, &line, replaced))
		offer_next(&asked, words + 1, line.count - 2);
	for (size_t i = 0; i < line.count; i++)
		buf_fini(&line.words[i]);
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Questions of the scripts: kymo completion [SHELL] -- WORD… */
static void answer(enum shell shell, const char *const *words, size_t count)
{
	struct asked asked = { .shell = shell, .typed = count ? words[count - 1] : "" };
	struct buf typed = { 0 };
	enum shell_quotes open;

	if (shell == SHELL_BASH) {
		answer_bash(count ? words[0] : "", count > 1 ? words[1] : "");
		return;
	}
	/* fish gives the word with its quotes, zsh without them. */
	if (asked.typed[0] == '"' || asked.typed[0] == '\'') {
		shell_words_read(asked.typed, asked.typed + strlen(asked.typed), &typed, &open);
		asked.typed = buf_get(&typed);
	}
	offer_next(&asked, words, count ? count - 1 : 0);
	buf_fini(&typed);
}

static bool is_question(int argc, char **argv, enum shell *shell)
{
	*shell = SHELL_OLD;
	if (argc > 1 && !strcmp(argv[1], "--"))
		return true;
	for (size_t i = 0; argc > 2 && i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (!strcmp(argv[1], scripts[i].shell))
			*shell = SHELL_BASH + (enum shell)i;
	return *shell != SHELL_OLD && !strcmp(argv[2], "--");
}

int cmd_completion(int argc, char **argv)
{
	struct cmds_args args;
	enum shell shell;
	int status, first;

	if (is_question(argc, argv, &shell)) {
		first = shell == SHELL_OLD ? 2 : 3;
		answer(shell, (const char *const *)argv + first, (size_t)(argc - first));
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
