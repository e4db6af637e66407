/* Rows of a query, one call each, for views. */
#ifndef KYMO_VIEWS_QUERY_ROWS_H
#define KYMO_VIEWS_QUERY_ROWS_H

#include <stdint.h>

#include "tables/tables.h"

struct rows {
	struct tables_result *result;
	size_t row;
	uint64_t number; /* of the row in the whole result, from 0 */
};

/* Calls each() with every row; a result other than 0 ends the query. */
int rows_each(struct tables *tables, const char *sql,
	      int (*each)(const struct rows *rows, void *context), void *context,
	      struct kymo_error *err);
/* A cell as a number; fallback for NULL and for anything else. */
double rows_number(const struct rows *rows, size_t column, double fallback);
uint64_t rows_count(const struct rows *rows, size_t column);
/* A cell as text on the heap ("" for NULL); the caller frees it. NULL: out of memory. */
char *rows_take_text(const struct rows *rows, size_t column);
/* The same into a buffer, cut if it does not fit. */
void rows_copy_text(const struct rows *rows, size_t column, char *out, size_t out_bytes);

#endif
