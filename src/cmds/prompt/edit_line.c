#include "cmds/prompt/edit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <histedit.h>

#include "views/term/text.h"

#define LIBRARY "libedit.so.2"
#define HISTORY_LINES 2000
#define SHOWN_MOST 100 /* words of a list */

#define EDIT_FUNCTIONS(X) \
	X(el_init) \
	X(el_end) \
	X(el_set) \
	X(el_get) \
	X(el_gets) \
	X(el_line) \
	X(el_insertstr) \
	X(el_deletestr) \
	X(el_source) \
	X(history) \
	X(history_init) \
	X(history_end)

static struct {
#define X(name) __typeof__(&name) name;
	EDIT_FUNCTIONS(X)
#undef X
} lib;

struct edit {
	EditLine *line;
	History *history;
	edit_words *words;
	void *context;
	const char *prompt;
	struct buf text; /* of the last line */
	bool cancelled;
};

static int edit_load(struct kymo_error *err)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;

	if (!library)
		return error_set(err, ENOENT,
				 "no history and no completion: " LIBRARY
				 " cannot be loaded; install it: apt-get install libedit2");
#define X(name) \
	*(void **)&lib.name = dlsym(library, #name); \
	if (!lib.name) \
		missing = #name;
	EDIT_FUNCTIONS(X)
#undef X
	if (missing)
		return error_set(err, ENOTSUP, "this " LIBRARY " lacks %s; install a newer one",
				 missing);
	return 0;
}

static struct edit *edit_of(EditLine *line)
{
	void *edit = NULL;

	lib.el_get(line, EL_CLIENTDATA, &edit);
	return edit;
}

static char *edit_prompt(EditLine *line)
{
	return (char *)edit_of(line)->prompt;
}

/* ---- Tab ------------------------------------------------------------------------------------- */

/* What all words begin with, in bytes; letters of either case are the same. */
static size_t common_bytes(const struct buf *words)
{
	const char *first = buf_get(words), *end = first + words->used;
	size_t common = strlen(first);

	for (const char *word = first; word < end; word += strlen(word) + 1)
		for (size_t i = 0; i < common; i++)
			if (word[i] != first[i])
				common = i;
	return common;
}

static size_t count_words(const struct buf *words)
{
	size_t count = 0;

	for (size_t i = 0; i < words->used; i++)
		count += !words->data[i];
	return count;
}

static void list_words(const struct buf *words)
{
	struct text_style style = text_style_of(stdout);
	const char *word = buf_get(words), *end = word + words->used;
	size_t column = 0, shown = 0, width = 0;

	for (const char *at = word; at < end; at += strlen(at) + 1)
		width = strlen(at) > width ? strlen(at) : width;
	putchar('\n');
	for (; word < end && shown < SHOWN_MOST; word += strlen(word) + 1, shown++) {
		if (column && column + width + 2 > (size_t)style.columns) {
			putchar('\n');
			column = 0;
		}
		printf("%-*s  ", (int)width, word); /* not foreign: plain names of SQL */
		column += width + 2;
	}
	printf("%s\n", word < end ? "…" : "");
	fflush(stdout);
}

/* Replaces what is typed of the word by what all words have in common, or lists them. */
static unsigned char edit_complete(EditLine *line, int key)
{
	struct edit *edit = edit_of(line);
	const LineInfo *info = lib.el_line(line);
	struct buf before = { 0 }, after = { 0 }, words = { 0 }, common = { 0 };
	unsigned char result = CC_ERROR;
	size_t begin = 0, typed;

	(void)key;
	buf_add(&before, info->buffer, (size_t)(info->cursor - info->buffer));
	buf_add(&after, info->cursor, (size_t)(info->lastchar - info->cursor));
	edit->words(edit->context, buf_get(&before), buf_get(&after), &begin, &words);
	typed = before.used - begin;
	buf_add(&common, buf_get(&words), words.used ? common_bytes(&words) : 0);
	if (common.used > typed || (words.used && count_words(&words) == 1)) {
		lib.el_deletestr(line, (int)typed);
		lib.el_insertstr(line, buf_get(&common));
		result = CC_REFRESH;
	} else if (words.used) {
		list_words(&words);
		result = CC_REDISPLAY;
	}
	buf_fini(&before);
	buf_fini(&after);
	buf_fini(&words);
	buf_fini(&common);
	return result;
}

static unsigned char edit_cancel(EditLine *line, int key)
{
	(void)key;
	edit_of(line)->cancelled = true;
	return CC_EOF;
}

/* ---- the line -------------------------------------------------------------------------------- */

static void edit_set_up(struct edit *edit)
{
	HistEvent event;

	lib.el_set(edit->line, EL_CLIENTDATA, edit);
	lib.el_set(edit->line, EL_PROMPT, edit_prompt);
	lib.el_set(edit->line, EL_EDITOR, "emacs");
	lib.history(edit->history, &event, H_SETSIZE, HISTORY_LINES);
	lib.history(edit->history, &event, H_SETUNIQUE, 1);
	lib.el_set(edit->line, EL_HIST, lib.history, edit->history);
	lib.el_set(edit->line, EL_ADDFN, "kymo-complete", "complete a table or column",
		   edit_complete);
	lib.el_set(edit->line, EL_ADDFN, "kymo-cancel", "drop the statement", edit_cancel);
	lib.el_set(edit->line, EL_BIND, "^I", "kymo-complete", NULL);
	lib.el_set(edit->line, EL_BIND, "^R", "em-inc-search-prev", NULL);
	lib.el_source(edit->line, NULL); /* ~/.editrc */
	/* Ctrl-C is a key while a line is typed, so that no signal has to get past libedit. */
	lib.el_set(edit->line, EL_SETTY, "-d", "-isig", NULL);
	lib.el_set(edit->line, EL_BIND, "^C", "kymo-cancel", NULL);
}

struct edit *edit_open(edit_words *words, void *context, struct kymo_error *err)
{
	struct edit *edit;

	if (edit_load(err))
		return NULL;
	edit = calloc(1, sizeof(*edit));
	if (edit) {
		*edit = (struct edit){ .words = words, .context = context, .prompt = "" };
		edit->line = lib.el_init("kymo", stdin, stdout, stderr);
		edit->history = lib.history_init();
	}
	if (!edit || !edit->line || !edit->history) {
		error_set(err, ENOMEM, "no history and no completion: libedit cannot begin");
		edit_close(edit);
		return NULL;
	}
	edit_set_up(edit);
	return edit;
}

void edit_close(struct edit *edit)
{
	if (!edit)
		return;
	if (edit->line)
		lib.el_end(edit->line);
	if (edit->history)
		lib.history_end(edit->history);
	buf_fini(&edit->text);
	free(edit);
}

enum edit_end edit_read(struct edit *edit, const char *prompt, const char **line)
{
	int count = 0;
	const char *text;

	edit->prompt = prompt;
	edit->cancelled = false;
	fflush(stdout);
	/* el_gets() prints the prompt first: Ctrl-C or Ctrl-D at once would be the terminal's. */
	lib.el_set(edit->line, EL_PREP_TERM, 1);
	text = lib.el_gets(edit->line, &count);
	buf_reset(&edit->text);
	if (text && count > 0)
		buf_add(&edit->text, text, (size_t)count - (text[count - 1] == '\n'));
	*line = buf_get(&edit->text);
	return edit->cancelled ? EDIT_CANCELLED : text && count > 0 ? EDIT_LINE : EDIT_ENDED;
}

void edit_remember(struct edit *edit, const char *line)
{
	HistEvent event;

	lib.history(edit->history, &event, H_ENTER, line);
}
