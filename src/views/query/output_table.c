/*
 * Aligned columns. The first 1,000 rows determine the width of each column; further rows are
 * streamed. Columns are cut or left out only on a terminal, if they do not fit.
 */
#include "views/query/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MEASURED 1000
#define GAP 2
#define WIDTH_LEAST 20 /* least width of a text that was cut, so that names stay readable */
#define WIDTH_ALIGNED 256 /* in a pipe: wider cells do not widen their column */

struct column {
	bool number;
	bool hidden;
	size_t width;
};

/* A cell of the measured rows: visible text, at an offset of .text. */
struct held {
	size_t offset;
	size_t bytes;
	size_t width;
	bool null;
};

struct table {
	struct tables_result *result;
	const struct text_style *style;
	FILE *out;
	size_t column_count;
	struct column *columns;
	struct held *held;
	size_t held_count;
	struct buf text;
	struct buf line;
	bool begun; /* the header was written, widths are fixed */
};

/* ---- layout --------------------------------------------------------------------------------- */

static size_t total_width(const struct table *table)
{
	size_t width = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (!table->columns[i].hidden)
			width += table->columns[i].width + (width ? GAP : 0);
	return width;
}

static struct column *widest_text(struct table *table)
{
	struct column *widest = NULL;

	for (size_t i = 0; i < table->column_count; i++) {
		struct column *column = &table->columns[i];

		if (column->hidden || column->number || column->width <= WIDTH_LEAST)
			continue;
		if (!widest || column->width > widest->width)
			widest = column;
	}
	return widest;
}

/* Cuts the widest texts first; then leaves out columns from the right until the rest fits. */
static void fit_terminal(struct table *table)
{
	size_t room = (size_t)table->style->columns;
	struct column *widest;

	while (total_width(table) > room && (widest = widest_text(table)))
		widest->width--;
	for (size_t i = table->column_count; i > 1 && total_width(table) > room; i--)
		table->columns[i - 1].hidden = true;
}

static void note_hidden(const struct table *table, struct output_count *count)
{
	size_t used = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		if (!table->columns[i].hidden)
			continue;
		count->hidden_count++;
		if (used < sizeof(count->hidden))
			used += (size_t)snprintf(count->hidden + used, sizeof(count->hidden) - used,
						 "%s%s", used ? ", " : "",
						 tables_column_name(table->result, i));
	}
}

/* ---- lines ---------------------------------------------------------------------------------- */

static size_t last_shown(const struct table *table)
{
	size_t last = table->column_count - 1;

	while (last && table->columns[last].hidden)
		last--;
	return last;
}

static void output_table_add_cell(struct table *table, size_t i, const char *text, size_t width,
				  enum text_paint paint)
{
	const struct column *column = &table->columns[i];
	size_t pad = width < column->width ? column->width - width : 0;

	if (i)
		buf_fill(&table->line, ' ', GAP);
	if (column->number)
		buf_fill(&table->line, ' ', pad);
	buf_text(&table->line, text_paint(table->style, paint));
	if (table->style->terminal && width > column->width)
		text_fit(&table->line, text, column->width, 0, table->style);
	else
		buf_text(&table->line, text);
	if (paint != TEXT_PLAIN)
		buf_text(&table->line, text_plain(table->style));
	if (!column->number && i != last_shown(table))
		buf_fill(&table->line, ' ', pad);
}

static void output_table_add_header(struct table *table)
{
	struct buf name = { 0 };

	for (size_t i = 0; i < table->column_count; i++) {
		const char *text = tables_column_name(table->result, i);

		if (table->columns[i].hidden)
			continue;
		buf_reset(&name);
		text_visible(&name, text, strlen(text));
		output_table_add_cell(table, i, buf_get(&name),
				      text_width(buf_get(&name), name.used), TEXT_BOLD);
	}
	buf_char(&table->line, '\n');
	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].hidden)
			continue;
		buf_fill(&table->line, ' ', i ? GAP : 0);
		for (size_t j = 0; j < table->columns[i].width; j++)
			buf_text(&table->line, table->style->utf8 ? "─" : "-");
	}
	buf_char(&table->line, '\n');
	buf_fini(&name);
}

static void add_held_row(struct table *table, const struct held *row)
{
	size_t begin = table->line.used;

	for (size_t i = 0; i < table->column_count; i++) {
		char *text = table->text.data + row[i].offset;

		if (!table->columns[i].hidden)
			output_table_add_cell(table, i, text, row[i].width,
					      row[i].null ? TEXT_DIM : TEXT_PLAIN);
	}
	/* No trailing blanks if the last cell is empty. */
	if (!row[last_shown(table)].bytes)
		while (table->line.used > begin && table->line.data[table->line.used - 1] == ' ')
			table->line.used--;
	buf_char(&table->line, '\n');
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* On a terminal, six digits and the integer part are enough. */
static void add_rounded(struct buf *out, double value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), fabs(value) >= 1e5 && fabs(value) < 1e15 ? "%.1f" : "%.6g",
		 value);
	buf_text(out, digits);
}

/* Adds the cell's visible text, ended by NUL, to table->text; returns its place. */
static struct held output_table_hold(struct table *table, size_t column, size_t row)
{
	struct held held = { .offset = table->text.used };
	struct tables_cell cell;

	tables_cell(table->result, column, row, &cell);
	held.null = cell.kind == TABLES_NULL;
	if (held.null)
		buf_text(&table->text, "NULL");
	else if (cell.kind == TABLES_TEXT && cell.text_bytes == 4 && !memcmp(cell.text, "NULL", 4))
		buf_text(&table->text, "\"NULL\"");
	else if (cell.kind == TABLES_TEXT || cell.kind == TABLES_JSON)
		text_visible(&table->text, cell.text, cell.text_bytes);
	else if (cell.kind == TABLES_DOUBLE && table->style->terminal)
		add_rounded(&table->text, cell.real);
	else
		output_cell(&table->text, &cell);
	held.bytes = table->text.used - held.offset;
	buf_char(&table->text, '\0');
	if (!table->text.failed)
		held.width = text_width(table->text.data + held.offset, held.bytes);
	return held;
}

static void output_table_measure(struct table *table, size_t column, size_t width)
{
	if (!table->style->terminal && width > WIDTH_ALIGNED)
		width = WIDTH_ALIGNED;
	if (width > table->columns[column].width)
		table->columns[column].width = width;
}

static int output_table_begin_table(struct table *table, struct output_count *count,
				    struct kymo_error *err)
{
	size_t rows = table->column_count ? table->held_count / table->column_count : 0;
	int rc = 0;

	if (table->text.failed)
		return error_set(
			err, ENOMEM,
			"out of memory while laying out the result; use --limit or -f csv");
	if (table->style->terminal)
		fit_terminal(table);
	note_hidden(table, count);
	output_table_add_header(table);
	for (size_t row = 0; row < rows && !rc; row++) {
		add_held_row(table, table->held + row * table->column_count);
		rc = output_flush(&table->line, table->out, false, err);
	}
	table->begun = true;
	return rc;
}

static int output_table_add_row(struct table *table, size_t row, struct output_count *count,
				struct kymo_error *err)
{
	struct held *cells = table->held + (table->begun ? 0 : table->held_count);

	if (table->begun)
		buf_reset(&table->text);
	for (size_t i = 0; i < table->column_count; i++) {
		cells[i] = output_table_hold(table, i, row);
		if (!table->begun)
			output_table_measure(table, i, cells[i].width);
	}
	count->rows++;
	if (table->begun) {
		if (table->text.failed)
			return error_set(err, ENOMEM,
					 "out of memory while writing a row; select less of it");
		add_held_row(table, cells);
		return output_flush(&table->line, table->out, false, err);
	}
	table->held_count += table->column_count;
	return count->rows == ROWS_MEASURED ? output_table_begin_table(table, count, err) : 0;
}

static int output_table_init(struct table *table, struct kymo_error *err)
{
	table->column_count = tables_column_count(table->result);
	table->columns = calloc(table->column_count + 1, sizeof(*table->columns));
	table->held = calloc((table->column_count + 1) * ROWS_MEASURED, sizeof(*table->held));
	if (!table->columns || !table->held)
		return error_set(err, ENOMEM, "out of memory for a result of %zu columns",
				 table->column_count);
	for (size_t i = 0; i < table->column_count; i++) {
		const char *name = tables_column_name(table->result, i);

		table->columns[i].number = output_is_number(tables_column_type(table->result, i));
		output_table_measure(table, i, text_width(name, strlen(name)));
	}
	return 0;
}

int output_table_write(struct tables_result *result, const struct output_options *options,
		       FILE *out, struct output_count *count, struct kymo_error *err)
{
	struct table table = { .result = result, .style = &options->style, .out = out };
	int rc = output_table_init(&table, err);
	int64_t rows = 0;

	while (!rc && count->rows < options->limit && (rows = tables_next(result, err)) > 0)
		for (size_t row = 0; row < (size_t)rows && count->rows < options->limit && !rc;
		     row++)
			rc = output_table_add_row(&table, row, count, err);
	if (rows < 0)
		rc = (int)rows;
	if (!rc && !table.begun)
		rc = output_table_begin_table(&table, count, err);
	if (!rc)
		rc = output_flush(&table.line, out, true, err);
	buf_fini(&table.text);
	buf_fini(&table.line);
	free(table.columns);
	free(table.held);
	return rc;
}
