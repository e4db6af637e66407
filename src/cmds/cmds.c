#include "cmds/cmds.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/spelling.h"
#include "base/settings.h"
#include "cmds/guard/guard.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/report/summary.h"
#include "views/term/format.h"
#include "views/term/target.h"
#include "views/term/text.h"

#define HELP_COLUMNS 80

/* ---- messages ------------------------------------------------------------------------------- */

/* Escapes control characters of typed or recorded text. Only messages of DuckDB have several
   lines. */
static void cmds_say(const char *command, const char *sentence)
{
	struct buf line = { 0 };
	const char *end;

	for (;; sentence = end + 1) {
		end = strchrnul(sentence, '\n');
		text_visible(&line, sentence, (size_t)(end - sentence));
		buf_char(&line, '\n');
		if (!*end)
			break;
	}
	fflush(stdout);
	/* not foreign: the command is a row of cmds_table */
	fprintf(stderr, "kymo%s%s: %s", command ? " " : "", command ? command : "", buf_get(&line));
	buf_fini(&line);
}

int cmds_wrong(const char *command, const char *format, ...)
{
	char sentence[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	for (char *c = sentence; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	cmds_say(command, sentence);
	return CMDS_WRONG_USE;
}

int cmds_fail(const char *command, const struct kymo_error *err)
{
	if (err->code == EPIPE)
		return CMDS_FAILED;
	cmds_say(command, err->text[0] ? err->text : strerror(err->code));
	return CMDS_FAILED;
}

int cmds_finish(const char *command)
{
	struct kymo_error err = { 0 };

	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return CMDS_OK;
	error_set(&err, errno ? errno : EIO, "cannot write to standard output: %s",
		  strerror(errno ? errno : EIO));
	return cmds_fail(command, &err);
}

void cmds_say_file(const char *file)
{
	struct stat status;

	if (!strcmp(file, "-") || stat(file, &status))
		return;
	if (S_ISDIR(status.st_mode))
		text_line(stderr, "kymo: %s/", file);
	else
		text_line(stderr, "kymo: %s, %s", file, format_bytes((double)status.st_size).text);
}

int cmds_remove_old(const char *command, const char *directory)
{
	struct kymo_error err = { 0 };
	struct stat st;

	if (!directory || lstat(directory, &st) || store_remove_empty(directory))
		return 0;
	if (store_kind(directory, &err) != STORE_DIRECTORY) {
		error_set(&err, EEXIST,
			  "%s exists and is not a recording; --force replaces only recordings",
			  directory);
		return cmds_fail(command, &err);
	}
	return store_remove(directory, &err) ? cmds_fail(command, &err) : 0;
}

/* ---- options -------------------------------------------------------------------------------- */

static const struct cmds_option help_option = { 'h', "help", NULL, "show this help" };

void cmds_args_init(struct cmds_args *args, const char *command, int argc, char **argv)
{
	/* Words are collected at the front of argv, over arguments that were read already. */
	*args = (struct cmds_args){
		.command = cmds_find(command),
		.argc = argc,
		.at = 1,
		.argv = argv,
		.words = argv + (argc > 0),
	};
}

static const struct cmds_option *find_letter(const struct cmds_command *command, char letter)
{
	if (letter == help_option.letter)
		return &help_option;
	for (const struct cmds_option *option = command->options; option->name; option++)
		if (option->letter == letter)
			return option;
	return NULL;
}

static const struct cmds_option *find_name(const struct cmds_command *command, const char *name,
					   size_t bytes)
{
	if (strlen(help_option.name) == bytes && !strncmp(help_option.name, name, bytes))
		return &help_option;
	for (const struct cmds_option *option = command->options; option->name; option++)
		if (strlen(option->name) == bytes && !strncmp(option->name, name, bytes))
			return option;
	return NULL;
}

/* The only option that begins like this; scripts of older versions abbreviate options of kymo
   run. */
static const struct cmds_option *find_abbreviated(const struct cmds_command *command,
						  const char *name, size_t bytes)
{
	const struct cmds_option *found = bytes && !strncmp(help_option.name, name, bytes)
						  ? &help_option
						  : NULL;

	for (const struct cmds_option *option = command->options; bytes && option->name; option++) {
		if (strncmp(option->name, name, bytes) != 0)
			continue;
		if (found)
			return NULL;
		found = option;
	}
	return found;
}

static int cmds_unknown_option(const struct cmds_args *args, const char *typed, size_t bytes)
{
	const char *names[32] = { help_option.name }, *suggestion;
	char word[64];
	size_t count = 1;

	snprintf(word, sizeof(word), "%.*s", (int)bytes, typed);
	for (const struct cmds_option *option = args->command->options; option->name && count < 31;
	     option++)
		names[count++] = option->name;
	suggestion = spelling_word(word, names);
	if (suggestion)
		return cmds_wrong(args->command->name, "unknown option --%s; did you mean --%s?",
				  word, suggestion);
	return cmds_wrong(args->command->name,
			  "unknown option --%s; kymo help %s lists the options", word,
			  args->command->name);
}

/* The option's value: attached to it (--name=value, -nvalue) or the next argument. */
static bool take_value(struct cmds_args *args, const struct cmds_option *option,
		       const char *attached, int *status)
{
	args->value = NULL;
	if (!option->value) {
		if (!attached)
			return true;
		*status = cmds_wrong(args->command->name, "--%s takes no value", option->name);
		return false;
	}
	args->value = attached;
	if (option->value[0] == '[')
		return true;
	if (!args->value && args->at < args->argc)
		args->value = args->argv[args->at++];
	if (args->value)
		return true;
	*status = cmds_wrong(args->command->name, "--%s needs a value: %s", option->name,
			     option->value);
	return false;
}

static const struct cmds_option *read_long(struct cmds_args *args, const char *word, int *status)
{
	const char *equals = strchr(word, '=');
	size_t bytes = equals ? (size_t)(equals - word) : strlen(word);
	const struct cmds_option *option = find_name(args->command, word, bytes);

	if (!option && args->takes_program)
		option = find_abbreviated(args->command, word, bytes);
	if (!option) {
		*status = cmds_unknown_option(args, word, bytes);
		return NULL;
	}
	return take_value(args, option, equals ? equals + 1 : NULL, status) ? option : NULL;
}

static const struct cmds_option *read_letter(struct cmds_args *args, int *status)
{
	char letter = *args->rest++;
	const struct cmds_option *option = find_letter(args->command, letter);
	const char *attached = NULL;

	if (!option) {
		*status = cmds_wrong(args->command->name,
				     "unknown option -%c; kymo help %s lists the options", letter,
				     args->command->name);
		return NULL;
	}
	if (option->value && *args->rest) {
		attached = args->rest;
		args->rest = "";
	}
	return take_value(args, option, attached, status) ? option : NULL;
}

/* SQL may begin with a comment. Names of options contain no blanks, which tells them apart. */
static bool is_comment(const char *word)
{
	size_t name = strcspn(word, "= \t\n");

	return !strncmp(word, "--", 2) && word[name] && word[name] != '=';
}

static const struct cmds_option *read_one(struct cmds_args *args, int *status)
{
	char *word;

	while (args->at < args->argc) {
		if (args->rest && *args->rest)
			return read_letter(args, status);
		word = args->argv[args->at++];
		/* "-" alone is a word: standard input. */
		if (args->only_words || word[0] != '-' || !word[1] ||
		    (args->takes_sql && is_comment(word))) {
			args->words[args->word_count++] = word;
			args->only_words |= args->takes_program;
		} else if (!strcmp(word, "--")) {
			args->only_words = true;
		} else if (word[1] == '-') {
			return read_long(args, word + 2, status);
		} else {
			args->rest = word + 1;
			return read_letter(args, status);
		}
	}
	return args->rest && *args->rest ? read_letter(args, status) : NULL;
}

const struct cmds_option *cmds_next(struct cmds_args *args, int *status)
{
	const struct cmds_option *option;

	*status = -1;
	option = read_one(args, status);
	if (option != &help_option)
		return option;
	cmds_print_help(args->command);
	args->help = true;
	*status = cmds_finish(args->command->name);
	return NULL;
}

int cmds_take_all(struct cmds_args *args,
		  int (*take)(void *request, struct cmds_args *args,
			      const struct cmds_option *option),
		  void *request)
{
	const struct cmds_option *option;
	int status;

	while ((option = cmds_next(args, &status))) {
		status = take(request, args, option);
		if (status >= 0)
			return status;
	}
	return status;
}

int cmds_take_file(struct cmds_args *args, const char **out_file, bool *out_force)
{
	const struct cmds_option *option;
	int status;

	while ((option = cmds_next(args, &status))) {
		if (!strcmp(option->name, "output"))
			*out_file = args->value;
		else
			*out_force = true;
	}
	return status;
}

int cmds_slow(const char *command, const char *name, const char *text, uint64_t *out_ns)
{
	char *end;
	double seconds;

	if (!text || (!*text && name[0] != '-'))
		return -1;
	seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0) || seconds > 86400)
		return cmds_wrong(command,
				  "%s=\"%s\" is not a number of seconds from 0 (off) to 86400",
				  name, text);
	*out_ns = (uint64_t)(seconds * 1e9);
	return -1;
}

bool cmds_number(struct cmds_args *args, const struct cmds_option *option, double most, double *out,
		 int *status)
{
	char *end = NULL;

	errno = 0;
	*out = strtod(args->value, &end);
	if (end != args->value && !*end && isfinite(*out) && *out >= 0 && *out <= most)
		return true;
	*status = cmds_wrong(args->command->name, "--%s needs a number from 0 to %.15g, not %s",
			     option->name, most, args->value);
	return false;
}

/* ---- help ----------------------------------------------------------------------------------- */

static void print_usage(const struct cmds_command *command)
{
	const char *usage = command->usage, *end;

	for (;; usage = end + 1) {
		end = strchrnul(usage, '\n');
		/* not foreign: a row of cmds_table */
		printf("%s kymo %s%s%.*s\n",
		       usage == command->usage ? "usage:" : "   or:", command->name,
		       *usage ? " " : "", (int)(end - usage), usage);
		if (!*end)
			break;
	}
}

/* How much of a list of values fits into a line: up to a "|", or all of it. */
static int fitting_bytes(const char *list, int columns)
{
	int bytes = columns;

	if (strlen(list) <= (size_t)columns)
		return (int)strlen(list);
	while (bytes > 1 && list[bytes - 1] != '|')
		bytes--;
	return bytes > 1 ? bytes : (int)strlen(list);
}

/* An option that leaves no room for its help. A list of values that is too long for a line goes on
   below its first value. */
static void print_wide_option(const char *option)
{
	int indent = (int)strcspn(option + 4, " ") + 7; /* "  -f, --format " */
	int column = 2, bytes;

	for (; *option; option += bytes, column = indent) {
		bytes = fitting_bytes(option, HELP_COLUMNS - column);
		/* not foreign: a row of a table of options */
		printf("%*s%.*s\n", column, "", bytes, option);
	}
}

static void print_option(const struct cmds_option *option)
{
	char left[192], letter[8] = "    ";

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
		 option->value && option->value[0] != '[' ? " " : "",
		 option->value ? option->value : "");
	if (strlen(left) > 27) {
		print_wide_option(left);
		left[0] = '\0';
	}
	/* not foreign: a row of a table of options */
	printf("  %-27s %s\n", left, option->help);
}

/* Lines of the form "command\tcomment". */
static void print_examples(const char *examples)
{
	const char *end, *tab;

	for (; *examples; examples = *end ? end + 1 : end) {
		end = strchrnul(examples, '\n');
		tab = memchr(examples, '\t', (size_t)(end - examples));
		if (tab) /* not foreign: of a row of cmds_table */
			printf("  %-38.*s  # %.*s\n", (int)(tab - examples), examples,
			       (int)(end - tab - 1), tab + 1);
		else /* not foreign: the same */
			printf("  %.*s\n", (int)(end - examples), examples);
	}
}

void cmds_print_help(const struct cmds_command *command)
{
	print_usage(command);
	printf("\n%c%s.\n", command->summary[0] & ~0x20, command->summary + 1);
	printf("\nOptions:\n");
	for (const struct cmds_option *option = command->options; option->name; option++)
		print_option(option);
	print_option(&help_option);
	printf("\nExamples:\n");
	print_examples(command->examples);
	if (strstr(command->usage, "TARGET"))
		printf("\nTARGET is a pid, a recording's path or name, or latest%s.\n",
		       strstr(command->usage, "[TARGET]") ? ", the default" : "");
	printf("%sMore: man kymo-%s\n", strstr(command->usage, "TARGET") ? "" : "\n",
	       command->name);
}

/* ---- Ctrl-C --------------------------------------------------------------------------------- */

static struct tables *volatile interruptible;
static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number)
{
	struct tables *tables = interruptible;

	(void)signal_number;
	if (interrupts++ && guard_is_child())
		return;
	if (!tables || interrupts > 1)
		_exit(CMDS_INTERRUPTED);
	tables_interrupt(tables);
}

void cmds_interruptible(struct tables *tables)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	interruptible = tables;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
}

bool cmds_interrupted(void)
{
	return interrupts > 0;
}

int cmds_open(const char *target, struct tables **out, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = tables_own_memory() };
	char path[KYMO_PATH_BYTES];
	int rc = target_resolve(target, path, sizeof(path), err);

	*out = NULL;
	if (rc)
		return rc;
	cmds_say_latest(target, path);
	rc = tables_open(path, &options, out, err);
	if (!rc)
		cmds_interruptible(*out);
	return rc;
}

void cmds_close(struct tables *tables)
{
	if (!tables)
		return;
	cmds_interruptible(NULL);
	tables_close(tables);
}

int cmds_guarded(const char *command, int (*work)(void *context), void *context)
{
	struct kymo_error err = { 0 };
	int status = guard_run(work, context, &err);

	if (status >= 0)
		return status;
	cmds_fail(command, &err);
	return status == -ECANCELED ? CMDS_INTERRUPTED : CMDS_FAILED;
}

int cmds_print_summary_below(const char *path, int lines_above, bool stack_said)
{
	struct text_style style = text_style_of(stderr);
	struct summary_options options = { .colour = style.colour,
					   .columns = style.columns,
					   .lines_above = lines_above,
					   .stack_said = stack_said };
	struct kymo_error err = { 0 };

	if (summary_print(path, &options, stderr, &err))
		text_line(stderr, "  no summary: %s", err.text);
	return CMDS_OK;
}

static int print_summary_of(void *context)
{
	return cmds_print_summary_below(context, 0, false);
}

void cmds_print_summary(char *path)
{
	struct kymo_error err = { 0 };

	if (guard_run(print_summary_of, path, &err) < 0)
		text_line(stderr, "  no summary: %s", err.text);
}

int cmds_check_settings(const char *command)
{
	struct settings_value value;
	struct kymo_error err = { 0 };
	char variable[48];

	for (const struct settings_key *key = settings_keys; key->name; key++) {
		const char *word;

		settings_variable(key, variable, sizeof(variable));
		word = getenv(variable);
		if (word && *word && settings_parse(key, word, &value, &err))
			return cmds_wrong(command, "%s=%s: %s", variable, word, err.text);
	}
	return -1;
}

bool cmds_names_latest(const char *target)
{
	const char *quiet = getenv("KYMO_QUIET");

	return !target && (!quiet || !*quiet || !strcmp(quiet, "0"));
}

void cmds_say_latest(const char *target, const char *path)
{
	if (cmds_names_latest(target))
		text_line(stderr, "recording %s", path);
}

bool cmds_samples_are_off(void)
{
	const char *rate = getenv("KYMO_SAMPLE_RATE");
	char *end = NULL;

	return rate && *rate && strtod(rate, &end) == 0 && end != rate && !*end;
}
