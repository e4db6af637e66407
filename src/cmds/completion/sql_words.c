#include "cmds/completion/sql_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "store/store.h"
#include "tables/catalog/catalog.h"

#define TABLE_BYTES 128

/* A table of the recorded program. */
struct sql_table {
	char name[64]; /* with its schema */
	size_t column_count;
	char columns[KYMO_COLUMNS_MAX][32];
};

struct sql_words {
	struct sql_table *tables;
	size_t count;
};

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

/* A name that needs no quotes in SQL and cannot mean anything else in a shell. */
static bool sql_words_plain(const char *name)
{
	while (is_word_char(*name))
		name++;
	return !*name;
}

/* ---- the program's tables -------------------------------------------------------------------- */

static bool sql_words_own(const char *table)
{
	char name[TABLE_BYTES];

	for (size_t i = 0; i < catalog_view_count; i++) {
		snprintf(name, sizeof(name), "%s.%s", catalog_views[i].schema,
			 catalog_views[i].name);
		if (!strcasecmp(name, table))
			return true;
	}
	return false;
}

static bool sql_words_known(const struct sql_words *words, const char *table)
{
	for (size_t i = 0; i < words->count; i++)
		if (!strcmp(words->tables[i].name, table))
			return true;
	return sql_words_own(table);
}

static void sql_words_take(struct sql_words *words, const struct store_stream *stream)
{
	struct sql_table *table;

	if (!strchr(stream->table, '.') || !sql_words_plain(stream->table) ||
	    sql_words_known(words, stream->table))
		return;
	table = realloc(words->tables, (words->count + 1) * sizeof(*table));
	if (!table)
		return;
	words->tables = table;
	table += words->count++;
	*table = (struct sql_table){ .column_count = 0 };
	snprintf(table->name, sizeof(table->name), "%s", stream->table);
	for (uint32_t i = 0; i < stream->column_count && i < KYMO_COLUMNS_MAX; i++)
		if (sql_words_plain(stream->columns[i].name))
			snprintf(table->columns[table->column_count++], 32, "%s",
				 stream->columns[i].name);
}

struct sql_words *sql_words_open(const char *target)
{
	struct sql_words *words = calloc(1, sizeof(*words));
	struct recording *recording = NULL;
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	if (!words || store_resolve(target, path, sizeof(path), &err) ||
	    store_kind_is_sql(store_kind(path, NULL)) || store_open(path, &recording, &err))
		return words;
	for (size_t i = 0; i < recording->stream_count; i++)
		sql_words_take(words, &recording->streams[i]);
	store_close(recording);
	return words;
}

void sql_words_close(struct sql_words *words)
{
	if (words)
		free(words->tables);
	free(words);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* One question. */
struct sql_question {
	const char *before, *after;
	const char *prefix; /* of the word; offered words begin with it */
	size_t prefix_bytes; /* "t." of "t.dur", for columns; 0: none */
	void (*offer)(void *context, const char *word, const char *meaning);
	void *context;
};

size_t sql_words_begin(const char *text)
{
	size_t begin = strlen(text);

	while (begin && is_word_char(text[begin - 1]))
		begin--;
	return begin;
}

/* Whether the text names the table, as a word of its own, before the byte `end`. */
static bool names_table(const char *text, const char *table, size_t end)
{
	size_t bytes = strlen(table);
	const char *at = text;

	while ((at = strcasestr(at, table)) && (size_t)(at - text) + bytes <= end) {
		if ((at == text || !is_word_char(at[-1])) && !is_word_char(at[bytes]))
			return true;
		at++;
	}
	return false;
}

static bool sql_words_named(const struct sql_question *question, const char *table)
{
	size_t end = (size_t)(question->prefix - question->before);

	return names_table(question->before, table, end) ||
	       names_table(question->after, table, strlen(question->after));
}

static void offer_table(const struct sql_question *question, const char *table, const char *about)
{
	if (!strncasecmp(table, question->prefix, strlen(question->prefix)))
		question->offer(question->context, table, about);
}

static void offer_column(const struct sql_question *question, const char *column, const char *about)
{
	const char *typed = question->prefix + question->prefix_bytes;
	char word[TABLE_BYTES];

	if (strncasecmp(column, typed, strlen(typed)) != 0)
		return;
	snprintf(word, sizeof(word), "%.*s%s", (int)question->prefix_bytes, question->prefix,
		 column);
	question->offer(question->context, word, about);
}

/* Two tables may have a column of one name: it is offered once, for the first. */
static bool is_earlier(const struct sql_question *question, size_t view, const char *column)
{
	char table[TABLE_BYTES];

	for (size_t i = 0; i < view; i++) {
		const struct catalog_view *one = &catalog_views[i];

		snprintf(table, sizeof(table), "%s.%s", one->schema, one->name);
		for (size_t k = 0; sql_words_named(question, table) && k < one->column_count; k++)
			if (!strcmp(one->columns[k].name, column))
				return true;
	}
	return false;
}

static void offer_columns(const struct sql_words *words, const struct sql_question *question)
{
	char table[TABLE_BYTES];

	for (size_t i = 0; i < catalog_view_count; i++) {
		const struct catalog_view *view = &catalog_views[i];

		snprintf(table, sizeof(table), "%s.%s", view->schema, view->name);
		for (size_t k = 0; sql_words_named(question, table) && k < view->column_count; k++)
			if (!is_earlier(question, i, view->columns[k].name))
				offer_column(question, view->columns[k].name,
					     view->columns[k].about ? view->columns[k].about : "");
	}
	for (size_t i = 0; i < words->count; i++)
		for (size_t k = 0; sql_words_named(question, words->tables[i].name) &&
				   k < words->tables[i].column_count;
		     k++)
			if (!is_earlier(question, catalog_view_count, words->tables[i].columns[k]))
				offer_column(question, words->tables[i].columns[k],
					     words->tables[i].name);
}

void sql_words_offer(const struct sql_words *words, const char *before, const char *after,
		     void (*offer)(void *context, const char *word, const char *meaning),
		     void *context)
{
	struct sql_question question = { before, after, NULL, 0, offer, context };
	char table[TABLE_BYTES];
	const char *dot;

	question.prefix = before + sql_words_begin(before);
	dot = strrchr(question.prefix, '.');
	question.prefix_bytes = dot ? (size_t)(dot + 1 - question.prefix) : 0;
	if (question.prefix_bytes >= TABLE_BYTES / 2)
		return;
	for (size_t i = 0; i < catalog_view_count; i++) {
		snprintf(table, sizeof(table), "%s.%s", catalog_views[i].schema,
			 catalog_views[i].name);
		offer_table(&question, table, catalog_views[i].about);
	}
	for (size_t i = 0; i < words->count; i++)
		offer_table(&question, words->tables[i].name, "a table of the program");
	offer_columns(words, &question);
}
