#include "cmds/prompt/prompt.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/completion/sql_words.h"
#include "cmds/prompt/edit.h"
#include "cmds/prompt/history_file.h"
#include "tables/catalog/catalog.h"
#include "views/term/text.h"

#define STATEMENT_MOST (1u << 20)

struct prompt {
	const struct prompt_host *host;
	struct edit *edit; /* NULL: lines come as the terminal has them */
	struct sql_words *words; /* NULL: no Tab was pressed yet */
	struct buf statement; /* its lines so far */
	char *plain; /* a line without edit */
	size_t plain_room;
	int history;
	bool ended;
};

/* ---- completion ------------------------------------------------------------------------------ */

static void prompt_offer(void *context, const char *word, const char *meaning)
{
	(void)meaning;
	buf_add(context, word, strlen(word) + 1);
}

/* The lines before count, too: tables may be named there. */
static void prompt_words(void *context, const char *before, const char *after, size_t *begin,
			 struct buf *out)
{
	struct prompt *prompt = context;
	struct buf text = { 0 };

	if (!prompt->words)
		prompt->words = sql_words_open(prompt->host->target);
	*begin = sql_words_begin(before);
	buf_add(&text, buf_get(&prompt->statement), prompt->statement.used);
	buf_text(&text, before);
	if (prompt->words && !text.failed)
		sql_words_offer(prompt->words, buf_get(&text), after, prompt_offer, out);
	buf_fini(&text);
}

/* ---- commands -------------------------------------------------------------------------------- */

static const char help[] =
	"A statement ends with ; or an empty line. Tab completes tables and columns.\n"
	"  .tables [SCHEMA]    tables and their columns\n"
	"  .schema TABLE       the columns of a table, and what they mean\n"
	"  \\timing [on|off]    print the time of each statement, or do not\n"
	"  .help               this text\n"
	"  .quit               end, as Ctrl-D does\n"
	"Ctrl-C ends the statement. An example: FROM trace.regions ORDER BY self_ns DESC LIMIT "
	"10;\n";

static bool is_identifier(const char *word)
{
	return word[0] && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "0123456789_.")];
}

static void run_about(struct prompt *prompt, const char *words, const char *name)
{
	struct buf sql = { 0 };

	buf_print(&sql, "%s%s", words, name);
	if (!sql.failed)
		prompt->host->run(prompt->host->context, buf_get(&sql));
	buf_fini(&sql);
}

static void prompt_tables(struct prompt *prompt, const char *schema)
{
	if (!*schema)
		prompt->host->run(prompt->host->context, "SHOW TABLES");
	else if (is_identifier(schema))
		run_about(prompt, "SHOW TABLES FROM ", schema);
	else
		text_line(stderr, ".tables: %s is not the name of a schema", schema);
}

static void prompt_schema(struct prompt *prompt, const char *table)
{
	const struct catalog_view *view = catalog_find(table);

	if (!*table) {
		fputs(".schema needs a table, such as trace.steps; .tables lists them\n", stderr);
	} else if (view) {
		text_line(stdout, "%s: %s", table, view->about);
		for (size_t i = 0; i < view->column_count; i++)
			text_line(stdout, "  %-20s %-10s %s", view->columns[i].name,
				  view->columns[i].type,
				  view->columns[i].about ? view->columns[i].about : "");
	} else if (is_identifier(table)) {
		run_about(prompt, "DESCRIBE ", table);
	} else {
		text_line(stderr, ".schema: %s is not the name of a table", table);
	}
}

static void prompt_timing(struct prompt *prompt, const char *word)
{
	bool *untimed = prompt->host->untimed;

	if (*word && strcmp(word, "on") != 0 && strcmp(word, "off") != 0) {
		text_line(stderr, "\\timing takes on or off, not %s", word);
		return;
	}
	*untimed = *word ? !strcmp(word, "off") : !*untimed;
	printf("timing is %s\n", *untimed ? "off" : "on");
}

/* A line that begins with a dot or a backslash. */
static void prompt_command(struct prompt *prompt, const char *line)
{
	char word[16] = "", argument[128] = "";

	sscanf(line, "%15s %127s", word, argument);
	if (argument[0] && argument[strlen(argument) - 1] == ';')
		argument[strlen(argument) - 1] = '\0';
	if (!strcmp(word, ".tables"))
		prompt_tables(prompt, argument);
	else if (!strcmp(word, ".schema"))
		prompt_schema(prompt, argument);
	else if (!strcmp(word, "\\timing") || !strcmp(word, ".timing"))
		prompt_timing(prompt, argument);
	else if (!strcmp(word, ".help"))
		fputs(help, stdout); /* not foreign: a constant */
	else if (!strcmp(word, ".quit") || !strcmp(word, ".exit") || !strcmp(word, "\\q"))
		prompt->ended = true;
	else
		text_line(stderr, "there is no command %s; .help lists them", word);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool prompt_is_blank(const char *text)
{
	return !text[strspn(text, " \t\r\n;")];
}

static void run_statement(struct prompt *prompt)
{
	if (!prompt_is_blank(buf_get(&prompt->statement)) && !prompt->statement.failed)
		prompt->host->run(prompt->host->context, buf_get(&prompt->statement));
	buf_reset(&prompt->statement);
}

/* A ; at the end of a line ends the statement, wherever it stands: DuckDB finds the quotes. */
static bool ends_statement(const char *line)
{
	size_t bytes = strlen(line);

	while (bytes && strchr(" \t\r", line[bytes - 1]))
		bytes--;
	return !bytes || line[bytes - 1] == ';';
}

static void prompt_take_line(struct prompt *prompt, const char *line)
{
	const char *text = line + strspn(line, " \t");

	if (*text) {
		if (prompt->edit)
			edit_remember(prompt->edit, line);
		history_file_add(prompt->history, line);
	}
	if (!prompt->statement.used && (*text == '.' || *text == '\\')) {
		prompt_command(prompt, text);
		return;
	}
	if (prompt->statement.used + strlen(line) > STATEMENT_MOST) {
		fputs("a statement has at most 1 MB\n", stderr);
		buf_reset(&prompt->statement);
		return;
	}
	if (*text) {
		buf_text(&prompt->statement, line);
		buf_char(&prompt->statement, '\n');
	}
	if (ends_statement(line))
		run_statement(prompt);
}

static enum edit_end prompt_read(struct prompt *prompt, const char **line)
{
	const char *words = prompt->statement.used ? " ...> " : "kymo> ";
	ssize_t count;

	if (prompt->edit)
		return edit_read(prompt->edit, words, line);
	fputs(words, stdout); /* not foreign: constants */
	fflush(stdout);
	count = getline(&prompt->plain, &prompt->plain_room, stdin);
	if (count <= 0)
		return EDIT_ENDED;
	prompt->plain[strcspn(prompt->plain, "\n")] = '\0';
	*line = prompt->plain;
	return EDIT_LINE;
}

static void prompt_remember(void *context, const char *line)
{
	struct prompt *prompt = context;

	if (prompt->edit)
		edit_remember(prompt->edit, line);
}

static void prompt_begin(struct prompt *prompt)
{
	struct kymo_error err = { 0 };

	setlocale(LC_CTYPE, ""); /* libedit reads characters, not bytes */
	prompt->edit = edit_open(prompt_words, prompt, &err);
	if (!prompt->edit)
		text_line(stderr, "kymo query: %s", err.text);
	prompt->history = history_file_open(prompt_remember, prompt);
	puts(".help lists commands; Ctrl-D ends");
}

int prompt_run(const struct prompt_host *host)
{
	struct prompt prompt = { .host = host };
	const char *line;

	prompt_begin(&prompt);
	while (!prompt.ended) {
		enum edit_end end = prompt_read(&prompt, &line);

		if (end == EDIT_LINE) {
			prompt_take_line(&prompt, line);
			continue;
		}
		putchar('\n');
		buf_reset(&prompt.statement); /* Ctrl-C drops it */
		prompt.ended = end == EDIT_ENDED;
	}
	edit_close(prompt.edit);
	history_file_close(prompt.history);
	sql_words_close(prompt.words);
	buf_fini(&prompt.statement);
	free(prompt.plain);
	return cmds_finish("query");
}
