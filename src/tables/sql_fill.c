#include "tables/sql_fill.h"

#include <string.h>

/* The value whose placeholder begins at the brace; NULL if there is none. */
static const struct sql_value *sql_fill_find(const char *brace, const struct sql_value *values,
					     size_t count)
{
	size_t bytes;

	for (size_t i = 0; i < count; i++) {
		bytes = strlen(values[i].name);
		if (!strncmp(brace + 1, values[i].name, bytes) && brace[bytes + 1] == '}')
			return &values[i];
	}
	return NULL;
}

void sql_fill(struct buf *out, const char *sql, const struct sql_value *values, size_t count)
{
	const struct sql_value *value;

	for (; *sql; sql++) {
		value = *sql == '{' ? sql_fill_find(sql, values, count) : NULL;
		if (!value) {
			buf_char(out, *sql);
			continue;
		}
		buf_text(out, value->text);
		sql += strlen(value->name) + 1;
	}
}
