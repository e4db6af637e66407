/*
 * RFC 4180: a header row, lines ended by CR LF, quotes doubled. NULL is an empty cell, an empty
 * text is "". A text that a spreadsheet would read as a formula is preceded by a '. On a terminal
 * control characters are escaped.
 */
#include "views/query/output.h"

#include <string.h>

static bool is_formula(const char *text, size_t bytes)
{
	return bytes && strchr("=+-@\t\r", text[0]) && text[0];
}

static bool needs_quotes(const char *text, size_t bytes)
{
	if (!bytes || text[0] == ' ' || text[bytes - 1] == ' ')
		return true;
	for (size_t i = 0; i < bytes; i++)
		if (text[i] == '"' || text[i] == ',' || text[i] == '\r' || text[i] == '\n')
			return true;
	return false;
}

void output_csv_text(struct buf *out, const char *text, size_t bytes)
{
	bool quotes = needs_quotes(text, bytes);

	if (quotes)
		buf_char(out, '"');
	if (is_formula(text, bytes))
		buf_char(out, '\'');
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '"')
			buf_char(out, '"');
		buf_char(out, text[i]);
	}
	if (quotes)
		buf_char(out, '"');
}

static void output_csv_add_text(struct buf *out, const char *text, size_t bytes, bool terminal)
{
	struct buf visible = { 0 };

	if (!terminal) {
		output_csv_text(out, text, bytes);
		return;
	}
	text_visible(&visible, text, bytes);
	output_csv_text(out, buf_get(&visible), visible.used);
	buf_fini(&visible);
}

static void output_csv_add_cell(struct buf *out, const struct tables_cell *cell, bool number,
				bool terminal)
{
	if ((cell->kind == TABLES_TEXT && !number) || cell->kind == TABLES_JSON)
		output_csv_add_text(out, cell->text, cell->text_bytes, terminal);
	else
		output_cell(out, cell);
}

static void output_csv_add_header(struct buf *out, struct tables_result *result, size_t columns,
				  bool terminal)
{
	for (size_t i = 0; i < columns; i++) {
		const char *name = tables_column_name(result, i);

		if (i)
			buf_char(out, ',');
		output_csv_add_text(out, name, strlen(name), terminal);
	}
	buf_text(out, "\n");
}

static void output_csv_add_row(struct buf *out, struct tables_result *result, size_t columns,
			       size_t row, bool terminal)
{
	struct tables_cell cell;

	for (size_t i = 0; i < columns; i++) {
		tables_cell(result, i, row, &cell);
		if (i)
			buf_char(out, ',');
		/* A lone NULL would be an empty line, which readers skip. */
		if (columns == 1 && cell.kind == TABLES_NULL)
			buf_text(out, "\"\"");
		output_csv_add_cell(out, &cell, output_is_number(tables_column_type(result, i)),
				    terminal);
	}
	buf_text(out, "\n");
}

int output_csv_write(struct tables_result *result, const struct output_options *options, FILE *out,
		     struct output_count *count, struct kymo_error *err)
{
	size_t columns = tables_column_count(result);
	struct buf buf = { 0 };
	int64_t rows = 0;
	int rc = 0;

	output_csv_add_header(&buf, result, columns, options->style.terminal);
	while (!rc && count->rows < options->limit && (rows = tables_next(result, err)) > 0) {
		for (size_t row = 0; row < (size_t)rows && count->rows < options->limit && !rc;
		     row++) {
			output_csv_add_row(&buf, result, columns, row, options->style.terminal);
			count->rows++;
			rc = output_flush(&buf, out, false, err);
		}
	}
	if (rows < 0)
		rc = (int)rows;
	if (!rc)
		rc = output_flush(&buf, out, true, err);
	buf_fini(&buf);
	return rc;
}
