/* kymo_meta(what): small tables made from the opened recording, not from rows of streams. Each
   is a row of an array with its columns and the function that fills them. */
#ifndef KYMO_TABLES_SCAN_META_H
#define KYMO_TABLES_SCAN_META_H

#include "tables/session.h"

enum meta_type { META_INTEGER, META_BIGINT, META_DOUBLE, META_TEXT, META_BOOLEAN };

struct meta_cell {
	bool known; /* false: NULL */
	int64_t number;
	double real;
	const char *text; /* borrowed from the recording, or static */
	size_t text_bytes;
};

struct meta_rows {
	struct meta_cell *cells;
	size_t width, count, room;
	bool failed; /* no memory */
	/* Memory that cells refer to and that is freed with the rows; may be NULL. */
	void *kept;
	void (*release)(void *kept);
};

/* A new row, all NULL. Never returns NULL: after a failure it is a scratch row. */
struct meta_cell *meta_add(struct meta_rows *rows);
void meta_number(struct meta_cell *cell, int64_t value);
void meta_real(struct meta_cell *cell, double value);
/* Rounds to one decimal: more digits of a mean time have no meaning. */
void meta_tenths(struct meta_cell *cell, double value);
/* "" becomes NULL. */
void meta_text(struct meta_cell *cell, const char *text);
/* Never NULL, so that tables can be joined by host and pid; "": unknown. */
void meta_host(struct meta_cell *cell, const char *host);
void meta_text_bytes(struct meta_cell *cell, const char *text, size_t bytes);

struct meta_column {
	const char *name;
	enum meta_type type;
};

struct meta_table {
	const char *name;
	const struct meta_column *columns;
	size_t column_count;
	void (*fill)(struct meta_rows *rows, const struct tables *tables);
};

/* meta_tables.c; NULL if there is no such table. */
const struct meta_table *meta_find(const char *name);

int meta_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err);

/* backtrace.c */
void backtrace_fill(struct meta_rows *rows, const struct tables *tables);

/* regions.c */
void regions_fill(struct meta_rows *rows, const struct tables *tables);
void regions_fill_overhead(struct meta_rows *rows, const struct tables *tables);

#endif
