#include "tables/catalog/session_views.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tables/catalog/catalog.h"
#include "tables/duck.h"
#include "tables/sql_fill.h"
#include "tables/tables.h"
#include "tables_sql.h"

#define WORD_SLOTS 512 /* a power of two, several times as many as there are words */
#define WORD_BYTES 32

/* The words that name schemas and views, by their hash; made once. */
static struct {
	const char *words[WORD_SLOTS];
	uint16_t *schemas, *names; /* slots of each view */
} vocabulary;
static pthread_once_t vocabulary_once = PTHREAD_ONCE_INIT;

static uint32_t word_hash(const char *word, size_t bytes)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint32_t)tolower((unsigned char)word[i])) * 16777619u;
	return hash;
}

static bool same_word(const char *word, size_t bytes, const char *name)
{
	return !strncasecmp(word, name, bytes) && !name[bytes];
}

/* Where the word is, or would be. */
static uint32_t word_slot(const char *word, size_t bytes)
{
	uint32_t slot = word_hash(word, bytes) % WORD_SLOTS;

	while (vocabulary.words[slot] && !same_word(word, bytes, vocabulary.words[slot]))
		slot = (slot + 1) % WORD_SLOTS;
	return slot;
}

static uint16_t learn_word(const char *word)
{
	uint32_t slot = word_slot(word, strlen(word));

	vocabulary.words[slot] = word;
	return (uint16_t)slot;
}

static void learn_words(void)
{
	vocabulary.schemas = calloc(2 * catalog_view_count, sizeof(*vocabulary.schemas));
	if (!vocabulary.schemas)
		return;
	vocabulary.names = vocabulary.schemas + catalog_view_count;
	for (size_t i = 0; i < catalog_view_count; i++) {
		vocabulary.schemas[i] = learn_word(catalog_views[i].schema);
		vocabulary.names[i] = learn_word(catalog_views[i].name);
	}
}

/* What a text names. */
struct named {
	bool words[WORD_SLOTS];
	bool all;
};

static bool is_part_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Words of queries that list tables or columns. */
static bool asks_for_all(const char *word, size_t bytes, bool first)
{
	static const char *const words[] = { "information_schema", "show", "describe" };
	static const char *const prefixes[] = { "duckdb_", "pragma_", "sqlite_", "pg_" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (same_word(word, bytes, words[i]))
			return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (bytes > strlen(prefixes[i]) &&
		    !strncasecmp(word, prefixes[i], strlen(prefixes[i])))
			return true;
	return first && same_word(word, bytes, "desc");
}

/* Words in texts and comments count, too: a view that is not needed costs a millisecond. */
static void find_words(const char *sql, struct named *named)
{
	bool first = true;

	while (*sql) {
		size_t bytes = 0;

		while (is_part_of_word(sql[bytes]))
			bytes++;
		if (!bytes) {
			sql++;
			continue;
		}
		named->all |= asks_for_all(sql, bytes, first);
		if (bytes < WORD_BYTES)
			named->words[word_slot(sql, bytes)] = true;
		first = false;
		sql += bytes;
	}
}

static void add_named(struct tables *tables, const char *text, bool all, struct buf *sql);

/* The views that it is made of come first. */
static void session_views_add(struct tables *tables, size_t i, struct buf *sql)
{
	const struct catalog_view *view = &catalog_views[i];

	if (tables->views_made[i])
		return;
	tables->views_made[i] = true;
	add_named(tables, view->sql, false, sql);
	buf_print(sql, "CREATE VIEW rec.%s.%s AS %s;\n", view->schema, view->name, view->sql);
}

static void add_named(struct tables *tables, const char *text, bool all, struct buf *sql)
{
	struct named named = { .all = all };

	find_words(text, &named);
	for (size_t i = 0; i < catalog_view_count; i++)
		if (named.all ||
		    (named.words[vocabulary.schemas[i]] && named.words[vocabulary.names[i]]))
			session_views_add(tables, i, sql);
}

static int run_statements(struct tables *tables, const struct buf *sql, struct kymo_error *err)
{
	duckdb_connection connection = NULL;
	int rc;

	if (duck.connect(tables->database, &connection) == DuckDBError)
		return error_set(err, EIO, "cannot connect to DuckDB");
	rc = duck_run(connection, "USE rec; BEGIN", "cannot create the views", err);
	if (!rc)
		rc = duck_run(connection, sql->data, "cannot create the views", err);
	if (!rc)
		rc = duck_run(connection, "COMMIT", "cannot create the views", err);
	duck.disconnect(&connection);
	return rc;
}

static int session_views_make(struct tables *tables, const char *text, bool all, bool *made,
			      struct kymo_error *err)
{
	struct buf sql = { 0 };
	bool *before;
	int rc = 0;

	pthread_mutex_lock(&tables->views_lock);
	before = malloc(catalog_view_count * sizeof(*before));
	if (before)
		memcpy(before, tables->views_made, catalog_view_count * sizeof(*before));
	if (before)
		add_named(tables, text, all, &sql);
	if (!before || sql.failed)
		rc = error_set(err, ENOMEM, "no memory for the views");
	else if (sql.used)
		rc = run_statements(tables, &sql, err);
	if (rc && before)
		memcpy(tables->views_made, before, catalog_view_count * sizeof(*before));
	*made = !rc && sql.used;
	pthread_mutex_unlock(&tables->views_lock);
	free(before);
	buf_fini(&sql);
	return rc;
}

int session_views_init(struct tables *tables, duckdb_connection connection, struct kymo_error *err)
{
	struct buf sql = { 0 };
	const char *schema = "";
	int rc;

	pthread_once(&vocabulary_once, learn_words);
	tables->views_made = calloc(catalog_view_count, sizeof(*tables->views_made));
	for (size_t i = 0; i < catalog_view_count; i++) {
		if (strcmp(schema, catalog_views[i].schema) != 0)
			buf_print(&sql, "CREATE SCHEMA %s;\n", catalog_views[i].schema);
		schema = catalog_views[i].schema;
	}
	rc = sql.failed || !tables->views_made || !vocabulary.schemas
		     ? error_set(err, ENOMEM, "no memory for the views")
		     : duck_run(connection, sql.data, "cannot create the schemas", err);
	buf_fini(&sql);
	return rc;
}

void session_views_fini(struct tables *tables)
{
	free(tables->views_made);
}

int session_views_need(struct tables *tables, const char *sql, struct kymo_error *err)
{
	bool made;

	return tables->views_made
		       ? session_views_make(tables, sql, tables->options.unsafe, &made, err)
		       : 0;
}

bool session_views_complete(struct tables *tables)
{
	bool made = false;

	return tables->views_made && !session_views_make(tables, "", true, &made, NULL) && made;
}

/* The table is in the session's own database, so that it is not listed among the recording's. */
void tables_keep_view(struct tables *tables, const char *schema, const char *view)
{
	duckdb_connection connection = NULL;
	struct buf sql = { 0 };

	if (!tables->recording)
		return;
	sql_fill(&sql, sql_keep_view,
		 (struct sql_value[]){
			 { "schema", .text = schema }, { "view", .text = view }, { NULL } });
	if (!sql.failed && !session_views_need(tables, sql.data, NULL) &&
	    duck.connect(tables->database, &connection) != DuckDBError) {
		duck_run(connection, sql.data, "cannot keep a view", NULL);
		duck.disconnect(&connection);
	}
	buf_fini(&sql);
}
