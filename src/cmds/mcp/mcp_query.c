/* The tool query: rows as JSON, as many as fit into an answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/mcp/mcp_tools.h"
#include "tables/tables.h"
#include "views/query/json.h"
#include "views/query/output.h"

#define ROWS_USUAL 50
#define ROWS_MOST 1000
#define SECONDS_USUAL 10
#define SECONDS_MOST 60
#define CELL_MOST 1000 /* bytes of a text */
#define COUNTED_MOST 100000 /* rows that are left out are counted up to here */
#define BYTES_MOST (MCP_ANSWER_MOST - 256) /* room for the end of the document */

struct mcp_rows {
	const struct mcp_arguments *arguments;
	struct tables_result *result;
	struct buf out, row;
	uint64_t limit, shown, left_out, cut;
	uint64_t row_cut; /* texts of the row that is being made */
	bool full; /* the answer has no room for the next row */
};

static void mcp_query_columns(struct mcp_rows *rows)
{
	buf_text(&rows->out, "{\"columns\":[");
	for (size_t i = 0; i < tables_column_count(rows->result); i++) {
		const char *name = tables_column_name(rows->result, i);
		const char *type = tables_column_type(rows->result, i);

		buf_text(&rows->out, i ? ",{\"name\":" : "{\"name\":");
		json_text(&rows->out, name, strlen(name));
		buf_text(&rows->out, ",\"type\":");
		json_text(&rows->out, type, strlen(type));
		buf_char(&rows->out, '}');
	}
	buf_text(&rows->out, "],\"rows\":[");
}

/* A long text ends before a character, so that it stays UTF-8. */
static void cut_cell(struct mcp_rows *rows, struct tables_cell *cell)
{
	if ((cell->kind != TABLES_TEXT && cell->kind != TABLES_JSON) ||
	    cell->text_bytes <= CELL_MOST)
		return;
	cell->kind = TABLES_TEXT; /* a part of a list is not JSON */
	cell->text_bytes = CELL_MOST;
	while (cell->text_bytes && ((unsigned char)cell->text[cell->text_bytes] & 0xc0) == 0x80)
		cell->text_bytes--;
	rows->row_cut++;
}

static void mcp_query_row(struct mcp_rows *rows, size_t row)
{
	struct tables_cell cell;

	buf_reset(&rows->row);
	rows->row_cut = 0;
	buf_text(&rows->row, rows->shown ? ",\n[" : "\n[");
	for (size_t i = 0; i < tables_column_count(rows->result); i++) {
		tables_cell(rows->result, i, row, &cell);
		cut_cell(rows, &cell);
		buf_text(&rows->row, i ? "," : "");
		output_json_cell(&rows->row, &cell,
				 output_is_number(tables_column_type(rows->result, i)));
	}
	buf_char(&rows->row, ']');
	rows->full |= rows->out.used + rows->row.used > BYTES_MOST;
	if (rows->full) {
		rows->left_out++;
		return;
	}
	buf_add(&rows->out, rows->row.data, rows->row.used);
	rows->shown++;
	rows->cut += rows->row_cut;
}

static int mcp_query_rows(struct mcp_rows *rows, struct kymo_error *err)
{
	struct kymo_error later;
	int64_t count;

	while ((count = tables_next(rows->result, rows->shown || rows->left_out ? &later : err)) >
	       0)
		for (size_t row = 0; row < (size_t)count; row++) {
			if (rows->full || rows->shown == rows->limit)
				rows->left_out++;
			else
				mcp_query_row(rows, row);
			if (rows->left_out > COUNTED_MOST)
				return 0;
		}
	/* Rows that are shown are right, also if the others take too long to count. */
	if (count < 0 && rows->left_out)
		rows->left_out = COUNTED_MOST + 1;
	else if (count < 0 && rows->shown)
		*err = later;
	return count < 0 && !rows->left_out ? (int)count : 0;
}

static void mcp_query_remarks(const struct mcp_rows *rows)
{
	fprintf(stderr, "%" PRIu64 " row%s shown", rows->shown, rows->shown == 1 ? "" : "s");
	if (rows->left_out > COUNTED_MOST)
		fprintf(stderr, ", many more left out");
	else if (rows->left_out)
		fprintf(stderr, ", %" PRIu64 " left out", rows->left_out);
	else
		fprintf(stderr, ", none left out");
	if (rows->full)
		fprintf(stderr, " (an answer has at most %u bytes)", MCP_ANSWER_MOST);
	else if (rows->left_out)
		fprintf(stderr, " (limit %" PRIu64 ")", rows->limit);
	if (rows->left_out)
		fprintf(stderr,
			"; aggregate, select fewer columns, or continue with ORDER BY … OFFSET "
			"%" PRIu64,
			rows->shown);
	fputc('\n', stderr);
	if (rows->cut)
		fprintf(stderr,
			"%" PRIu64 " texts were cut after %d bytes; substr(column, %d) has the "
			"rest\n",
			rows->cut, CELL_MOST, CELL_MOST + 1);
}

static int mcp_query_ask(struct mcp_rows *rows, struct tables *tables, struct kymo_error *err)
{
	int rc = tables_query(tables, json_read_get(&rows->arguments->json, "sql"), &rows->result,
			      err);

	if (rc)
		return rc;
	mcp_query_columns(rows);
	if (rows->out.used > BYTES_MOST)
		rc = error_set(err, E2BIG, "%zu columns are too many for an answer; name some",
			       tables_column_count(rows->result));
	if (!rc)
		rc = mcp_query_rows(rows, err);
	buf_text(&rows->out, rows->shown ? "\n]}\n" : "]}\n");
	tables_result_close(rows->result);
	if (!rc && (rows->out.failed || rows->row.failed))
		rc = error_set(err, ENOMEM, "out of memory for the rows");
	return rc;
}

static int mcp_query_local(void *context)
{
	struct mcp_rows rows = { .arguments = context };
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	const char *target;
	uint64_t seconds = mcp_tools_number(rows.arguments, "timeout", SECONDS_USUAL, SECONDS_MOST);
	int rc;

	rows.limit = mcp_tools_number(rows.arguments, "limit", ROWS_USUAL, ROWS_MOST);
	if (!mcp_tools_target(rows.arguments, "target", &target))
		return CMDS_FAILED;
	rc = mcp_tools_open(target, (uint32_t)(seconds ? seconds : 1) * 1000, &tables, &err);
	if (!rc)
		rc = mcp_query_ask(&rows, tables, &err);
	cmds_close(tables);
	if (rc)
		return cmds_fail("query", &err);
	fwrite(buf_get(&rows.out), 1, rows.out.used, stdout); /* not foreign: JSON */
	mcp_query_remarks(&rows);
	return CMDS_OK;
}

int mcp_query(const struct mcp_arguments *arguments)
{
	return cmds_guarded("query", mcp_query_local, (void *)arguments);
}
