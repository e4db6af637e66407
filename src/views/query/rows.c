#include "views/query/rows.h"

#include <stdlib.h>
#include <string.h>

int rows_each(struct tables *tables, const char *sql,
	      int (*each)(const struct rows *rows, void *context), void *context,
	      struct kymo_error *err)
{
	struct rows rows = { 0 };
	int64_t count = 0;
	int rc = tables_query(tables, sql, &rows.result, err);

	while (!rc && (count = tables_next(rows.result, err)) > 0)
		for (rows.row = 0; rows.row < (size_t)count && !rc; rows.row++, rows.number++)
			rc = each(&rows, context);
	tables_result_close(rows.result);
	return count < 0 ? (int)count : rc;
}

double rows_number(const struct rows *rows, size_t column, double fallback)
{
	struct tables_cell cell;
	char text[64], *end = NULL;
	double number;

	tables_cell(rows->result, column, rows->row, &cell);
	switch (cell.kind) {
	case TABLES_INTEGER:
	case TABLES_BOOL: return (double)cell.integer;
	case TABLES_UNSIGNED: return (double)cell.unsigned_integer;
	case TABLES_DOUBLE: return cell.real;
	case TABLES_TEXT: /* HUGEINT, DECIMAL */
		if (cell.text_bytes >= sizeof(text))
			return fallback;
		memcpy(text, cell.text, cell.text_bytes);
		text[cell.text_bytes] = '\0';
		number = strtod(text, &end);
		return end == text || *end ? fallback : number;
	default: return fallback;
	}
}

uint64_t rows_count(const struct rows *rows, size_t column)
{
	double number = rows_number(rows, column, 0);

	return number > 0 ? number < 1.8e19 ? (uint64_t)number : UINT64_MAX : 0;
}

static const char *get_text(const struct rows *rows, size_t column, size_t *bytes)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	*bytes = cell.kind == TABLES_TEXT || cell.kind == TABLES_JSON ? cell.text_bytes : 0;
	return *bytes ? cell.text : "";
}

/* Ends at the first NUL, which is enough for printing names. */
char *rows_take_text(const struct rows *rows, size_t column)
{
	size_t bytes;
	const char *text = get_text(rows, column, &bytes);

	return strndup(text, bytes);
}

void rows_copy_text(const struct rows *rows, size_t column, char *out, size_t out_bytes)
{
	size_t bytes;
	const char *text = get_text(rows, column, &bytes);

	if (bytes >= out_bytes)
		bytes = out_bytes - 1;
	memcpy(out, text, bytes);
	out[bytes] = '\0';
}
