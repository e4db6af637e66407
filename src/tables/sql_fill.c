#include "tables/sql_fill.h"

#include <inttypes.h>
#include <string.h>

/* The value whose placeholder begins at the brace; NULL if there is none. */
static const struct sql_value *sql_fill_find(const char *brace, const struct sql_value *values)
{
	size_t bytes;

	for (; values->name; values++) {
		bytes = strlen(values->name);
		if (!strncmp(brace + 1, values->name, bytes) && brace[bytes + 1] == '}')
			return values;
	}
	return NULL;
}

void sql_fill(struct buf *out, const char *sql, const struct sql_value *values)
{
	const struct sql_value *value;

	for (; *sql; sql++) {
		value = *sql == '{' ? sql_fill_find(sql, values) : NULL;
		if (!value) {
			buf_char(out, *sql);
			continue;
		}
		if (value->text)
			buf_text(out, value->text);
		else
			buf_print(out, "%" PRId64, value->number);
		sql += strlen(value->name) + 1;
	}
}
