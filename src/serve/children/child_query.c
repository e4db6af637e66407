/* SQL of clients in the formats of /api/query. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve/children/child.h"
#include "serve/target.h"
#include "views/query/json.h"
#include "views/query/output.h"

#define JSON_BYTES (UINT64_C(64) << 20)

static void child_query_add_columns(struct buf *out, struct tables_result *result)
{
	buf_text(out, "{\"columns\":[");
	for (size_t i = 0; i < tables_column_count(result); i++) {
		buf_text(out, i ? ",{\"name\":" : "{\"name\":");
		json_text(out, tables_column_name(result, i),
			  strlen(tables_column_name(result, i)));
		buf_text(out, ",\"type\":");
		json_text(out, tables_column_type(result, i),
			  strlen(tables_column_type(result, i)));
		buf_char(out, '}');
	}
	buf_text(out, "],\"rows\":[");
}

static void child_query_add_row(struct buf *out, struct tables_result *result, size_t row)
{
	struct tables_cell cell;

	buf_char(out, '[');
	for (size_t i = 0; i < tables_column_count(result); i++) {
		tables_cell(result, i, row, &cell);
		buf_text(out, i ? "," : "");
		output_json_cell(out, &cell, output_is_number(tables_column_type(result, i)));
	}
	buf_char(out, ']');
}

static int child_query_make_json(const struct question *question, struct tables_result *result,
				 struct buf *out, uint64_t began_ns, struct kymo_error *err)
{
	uint64_t count = 0;
	bool more = false;
	int64_t rows = 0;

	child_query_add_columns(out, result);
	while (!more && (rows = tables_next(result, err)) > 0)
		for (size_t row = 0; row < (size_t)rows && !more; row++) {
			more = count == question->limit || out->used > JSON_BYTES;
			if (more)
				break;
			buf_text(out, count++ ? ",\n" : "\n");
			child_query_add_row(out, result, row);
		}
	if (rows < 0)
		return (int)rows;
	buf_print(out,
		  "],\"truncated\":%s,\"row_count\":%" PRIu64 ",\"elapsed_ns\":%" PRIu64 ",\"id\":",
		  more ? "true" : "false", count, target_clock_ns() - began_ns);
	if (question->id[0])
		json_text(out, question->id, strlen(question->id));
	else
		buf_text(out, "null");
	buf_text(out, "}\n");
	return 0;
}

static int child_query_write_json(const struct question *question, struct tables_result *result,
				  FILE *out, uint64_t began_ns, struct kymo_error *err)
{
	struct buf text = { 0 };
	int rc = child_query_make_json(question, result, &text, began_ns, err);

	if (!rc)
		rc = child_write(&text, out, err);
	buf_fini(&text);
	return rc;
}

static int child_query_write(const struct question *question, const struct output_format *format,
			     struct tables_result *result, FILE *out, struct kymo_error *err)
{
	struct output_options options = {
		.limit = question->limit,
		.style = { .utf8 = true,
			   .terminal = question->columns > 0,
			   .columns = question->columns > 0 ? question->columns : 80 },
	};
	struct output_count count = { 0 };

	if (question->scratch[0])
		setenv("TMPDIR", question->scratch, 1);
	return format->write(result, &options, out, &count, err);
}

static void child_query_wrap_limit(const char *sql, bool binary, uint64_t limit, struct buf *out)
{
	size_t bytes = strlen(sql);

	while (bytes && strchr(" \t\r\n;", sql[bytes - 1]))
		bytes--;
	buf_text(out, binary ? "SELECT * FROM (" : "");
	buf_add(out, sql, bytes);
	/* On a line of its own: the query may end with a comment. */
	if (binary)
		buf_print(out, "\n) LIMIT %" PRIu64, limit);
}

int child_query(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err)
{
	const struct output_format *format = question->format[0] ? output_find(question->format)
								 : NULL;
	uint64_t began_ns = target_clock_ns();
	struct tables_result *result = NULL;
	struct buf wrapped = { 0 };
	int rc;

	child_query_wrap_limit(sql, format && format->binary, question->limit, &wrapped);
	rc = wrapped.failed ? error_set(err, ENOMEM, "out of memory for the query")
			    : tables_query(tables, buf_get(&wrapped), &result, err);
	if (!rc)
		rc = format ? child_query_write(question, format, result, out, err)
			    : child_query_write_json(question, result, out, began_ns, err);
	tables_result_close(result);
	buf_fini(&wrapped);
	return rc;
}
