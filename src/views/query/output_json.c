/* An array of objects, one per line; valid for any bytes in names. */
#include "views/query/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "views/term/format.h"
#include "views/query/json.h"

static size_t digits_at(const char *text, size_t bytes, size_t at)
{
	size_t count = 0;

	while (at + count < bytes && text[at + count] >= '0' && text[at + count] <= '9')
		count++;
	return count;
}

/* DECIMAL and HUGEINT come as text; only JSON numbers are written without quotes. */
static bool output_json_is_json_number(const char *text, size_t bytes)
{
	size_t at = bytes && text[0] == '-', digits = digits_at(text, bytes, at);

	if (!digits || (digits > 1 && text[at] == '0'))
		return false;
	at += digits;
	if (at < bytes && text[at] == '.') {
		digits = digits_at(text, bytes, at + 1);
		at += 1 + digits;
		if (!digits)
			return false;
	}
	return at == bytes;
}

void output_json_cell(struct buf *out, const struct tables_cell *cell, bool number)
{
	bool quoted = cell->kind == TABLES_TEXT &&
		      !(number && output_json_is_json_number(cell->text, cell->text_bytes));

	if (cell->kind == TABLES_NULL || (cell->kind == TABLES_DOUBLE && !isfinite(cell->real)))
		buf_text(out, "null");
	else if (quoted)
		json_text(out, cell->text, cell->text_bytes);
	else
		output_cell(out, cell);
}

/* Keys, each as "name": with its quotes; repeated names get a number. */
static char **make_keys(struct tables_result *result, size_t count)
{
	char **keys = calloc(count ? count : 1, sizeof(*keys));
	struct buf key = { 0 };

	for (size_t i = 0; keys && i < count; i++) {
		const char *name = tables_column_name(result, i);
		size_t same = 0;

		for (size_t j = 0; j < i; j++)
			same += !strcmp(tables_column_name(result, j), name);
		buf_reset(&key);
		json_text(&key, name, strlen(name));
		if (same && key.used) {
			key.used--; /* over the closing quote */
			buf_print(&key, "_%zu\"", same);
		}
		buf_char(&key, ':');
		keys[i] = strdup(buf_get(&key));
	}
	buf_fini(&key);
	return keys;
}

static void output_json_add_row(struct buf *out, struct tables_result *result, char **keys,
				size_t columns, size_t row)
{
	struct tables_cell cell;

	for (size_t i = 0; i < columns; i++) {
		tables_cell(result, i, row, &cell);
		buf_char(out, i ? ',' : '{');
		buf_text(out, keys[i] ? keys[i] : "\"?\":");
		output_json_cell(out, &cell, output_is_number(tables_column_type(result, i)));
	}
	buf_char(out, '}');
}

int output_json_write(struct tables_result *result, const struct output_options *options, FILE *out,
		      struct output_count *count, struct kymo_error *err)
{
	size_t columns = tables_column_count(result);
	char **keys = make_keys(result, columns);
	struct buf buf = { 0 };
	int64_t rows = 0;
	int rc = 0;

	buf_char(&buf, '[');
	while (!rc && count->rows < options->limit && (rows = tables_next(result, err)) > 0) {
		for (size_t row = 0; row < (size_t)rows && count->rows < options->limit && !rc;
		     row++) {
			buf_text(&buf, count->rows++ ? ",\n" : "\n");
			output_json_add_row(&buf, result, keys, columns, row);
			rc = output_flush(&buf, out, false, err);
		}
	}
	if (rows < 0)
		rc = (int)rows;
	buf_text(&buf, count->rows ? "\n]\n" : "]\n");
	if (!rc)
		rc = output_flush(&buf, out, true, err);
	for (size_t i = 0; keys && i < columns; i++)
		free(keys[i]);
	free(keys);
	buf_fini(&buf);
	return rc;
}
