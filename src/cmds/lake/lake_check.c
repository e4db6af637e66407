/* kymo lake check: files that cannot be read, ranks that are missing, and where rows went:
   emitted = in the lake + lost + dropped + waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/lake/lake_words.h"
#include "lake_sql.h"
#include "store/lake/lake_dir.h"
#include "tables/tables.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/term/format.h"
#include "views/term/target.h"
#include "views/term/text.h"

enum { TABLE, WRITERS, EMITTED, IN_LAKE, LOST, DROPPED, WAITING, WRONG };

struct lake_check {
	struct tables *tables;
	bool json, first;
	uint64_t problems, wrong;
};

/* Rows that the table has now. Some tables have fewer rows than their streams. */
static double rows_in_table(struct lake_check *check, const char *table)
{
	struct buf sql = { 0 };
	double count;

	buf_print(&sql, "SELECT count(*) FROM %s", table);
	count = sql.failed ? -1 : tables_number(check->tables, sql.data, -1);
	buf_fini(&sql);
	return count;
}

static void lake_check_print(const struct rows *rows, const char *table, double there, bool first)
{
	struct buf out = { 0 };

	buf_text(&out, first ? "\n{\"table\":" : ",\n{\"table\":");
	json_text(&out, table, strlen(table));
	for (size_t i = WRITERS; i <= WRONG; i++)
		buf_print(&out, ",\"%s\":%" PRIu64, tables_column_name(rows->result, i),
			  rows_count(rows, i));
	buf_print(&out, ",\"rows\":%.0f}", there);
	fputs(buf_get(&out), stdout); /* not foreign: JSON */
	buf_fini(&out);
}

static int check_table(const struct rows *rows, void *context)
{
	struct lake_check *check = context;
	char table[160];
	double there;

	rows_copy_text(rows, TABLE, table, sizeof(table));
	if (strspn(table, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") !=
	    strlen(table))
		return 0;
	there = rows_in_table(check, table);
	check->wrong += rows_count(rows, WRONG);
	if (check->json) {
		lake_check_print(rows, table, there, check->first);
		check->first = false;
		return 0;
	}
	text_line(stdout, "%-22s %12s %12s %10s %10s %10s%s", table,
		  format_count(rows_count(rows, EMITTED)).text,
		  format_count(rows_count(rows, IN_LAKE)).text,
		  format_count(rows_count(rows, LOST)).text,
		  format_count(rows_count(rows, DROPPED)).text,
		  format_count(rows_count(rows, WAITING)).text,
		  rows_count(rows, WRONG) ? "  wrong: the sum differs" : "");
	return 0;
}

static int check_problem(const struct rows *rows, void *context)
{
	struct lake_check *check = context;
	struct buf out = { 0 };
	char text[1024];

	rows_copy_text(rows, 0, text, sizeof(text));
	check->problems++;
	if (check->json) {
		json_text(&out, text, strlen(text));
		fputs(check->first ? "\n" : ",\n", stdout);
		fputs(buf_get(&out), stdout); /* not foreign: JSON */
		check->first = false;
	} else {
		text_line(stdout, "%s", text);
	}
	buf_fini(&out);
	return 0;
}

static int lake_check_all(struct lake_check *check, struct kymo_error *err)
{
	int rc;

	check->first = true;
	if (check->json)
		fputs("{\"problems\":[", stdout);
	rc = rows_each(check->tables, sql_check_problems, check_problem, check, err);
	if (rc < 0)
		return rc;
	if (check->json)
		fputs("],\"tables\":[", stdout);
	else
		printf("%-22s %12s %12s %10s %10s %10s\n", "table", "emitted", "in the lake",
		       "lost", "dropped", "waiting");
	check->first = true;
	rc = rows_each(check->tables, sql_check_tables, check_table, check, err);
	if (check->json)
		printf("],\"wrong\":%" PRIu64 "}\n", check->wrong);
	return rc < 0 ? rc : 0;
}

static int lake_check_local(void *context)
{
	const struct lake_request *request = context;
	struct lake_check check = { .json = request->json };
	struct kymo_error err = { 0 };
	int rc = cmds_open(request->words[0], &check.tables, &err);

	if (!rc)
		rc = lake_check_all(&check, &err);
	cmds_close(check.tables);
	if (rc)
		return cmds_fail("lake", &err);
	rc = cmds_finish("lake");
	return rc ? rc : check.problems || check.wrong ? CMDS_FAILED : CMDS_OK;
}

int lake_words_check(struct lake_request *request)
{
	return cmds_guarded("lake", lake_check_local, request);
}
