/* For tests of tables/: a recording in a directory of its own, and answers as one text. */
#ifndef KYMO_TESTS_TABLES_ASK_H
#define KYMO_TESTS_TABLES_ASK_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tables/tables.h"

#ifndef TEST_BUILD_DIR
#define TEST_BUILD_DIR "build"
#endif

static char ask_directory[64];
static struct kymo_error ask_error;

/* The library is beside build/kymo, not beside the test. */
static inline void ask_setup(void)
{
	setenv("KYMO_DUCKDB", TEST_BUILD_DIR "/libduckdb.so", 0);
	strcpy(ask_directory, "/tmp/kymo-tables-XXXXXX");
	assert_non_null(mkdtemp(ask_directory));
}

static inline void ask_teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", ask_directory);
	assert_int_equal(system(command), 0);
}

static inline const char *ask_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", ask_directory, name);
	return path;
}

static inline struct tables *ask_open_with(const char *path, const struct tables_options *options)
{
	struct tables *tables = NULL;

	if (tables_open(path, options, &tables, &ask_error))
		fail_msg("%s", ask_error.text);
	return tables;
}

static inline struct tables *ask_open(const char *path)
{
	struct tables_options options = { .threads = 2 };

	return ask_open_with(path, &options);
}

static inline void ask_cell(struct buf *out, const struct tables_cell *cell)
{
	switch (cell->kind) {
	case TABLES_NULL: buf_text(out, "NULL"); break;
	case TABLES_BOOL: buf_text(out, cell->integer ? "true" : "false"); break;
	case TABLES_INTEGER: buf_print(out, "%" PRId64, cell->integer); break;
	case TABLES_UNSIGNED: buf_print(out, "%" PRIu64, cell->unsigned_integer); break;
	case TABLES_DOUBLE: buf_print(out, "%.6g", cell->real); break;
	case TABLES_TEXT:
	case TABLES_JSON: buf_add(out, cell->text, cell->text_bytes); break;
	}
}

static inline int ask_rows(struct tables_result *result, struct buf *out)
{
	struct tables_cell cell;
	int64_t count;

	while ((count = tables_next(result, &ask_error)) > 0)
		for (int64_t row = 0; row < count; row++)
			for (size_t column = 0; column < tables_column_count(result); column++) {
				tables_cell(result, column, (size_t)row, &cell);
				buf_text(out, column ? "|" : row || out->used ? "\n" : "");
				ask_cell(out, &cell);
			}
	return (int)count;
}

/* Rows by lines, cells by bars; -errno and ask_error on failure. The text lives until the next
   call. */
static inline int ask(struct tables *tables, const char *sql, const char **out)
{
	static struct buf text;
	struct tables_result *result = NULL;
	int rc = tables_query(tables, sql, &result, &ask_error);

	buf_reset(&text);
	if (!rc)
		rc = ask_rows(result, &text);
	tables_result_close(result);
	*out = text.used ? buf_get(&text) : "";
	return rc;
}

static inline void assert_answer(struct tables *tables, const char *sql, const char *expected)
{
	const char *answer;

	if (ask(tables, sql, &answer))
		fail_msg("%s\n%s", sql, ask_error.text);
	if (strcmp(answer, expected))
		fail_msg("%s\nanswers\n%s\nnot\n%s", sql, answer, expected);
}

static inline void assert_refused(struct tables *tables, const char *sql, int code,
				  const char *words)
{
	const char *answer;
	int rc = ask(tables, sql, &answer);

	if (rc != -code || !strstr(ask_error.text, words))
		fail_msg("%s\ngives %d: %s\nnot %d: …%s…", sql, rc, rc ? ask_error.text : answer,
			 -code, words);
}

#endif
