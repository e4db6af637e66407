/* Values that are known only at run time, in the text of a .sql file. */
#ifndef KYMO_TABLES_SQL_FILL_H
#define KYMO_TABLES_SQL_FILL_H

#include <stdint.h>

#include "base/buf.h"

struct sql_value {
	const char *name; /* NULL ends a list */
	const char *text; /* SQL; quote texts with catalog_quote_text(). NULL: the number */
	int64_t number;
};

/* Appends sql with every {name} replaced by its value. Other braces stay: {'a': 1} is a struct. */
void sql_fill(struct buf *out, const char *sql, const struct sql_value *values);

#endif
