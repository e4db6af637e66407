/* Values that are known only at run time, in the text of a .sql file. */
#ifndef KYMO_TABLES_SQL_FILL_H
#define KYMO_TABLES_SQL_FILL_H

#include <stddef.h>

#include "base/buf.h"

struct sql_value {
	const char *name;
	const char *text; /* SQL; quote texts with catalog_quote_text() */
};

/* Appends sql with every {name} replaced by its text. Other braces stay: {'a': 1} is a struct. */
void sql_fill(struct buf *out, const char *sql, const struct sql_value *values, size_t count);

#endif
