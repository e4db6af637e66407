/* Ranks that a reader has chosen: "0,3,8-15". */
#ifndef KYMO_VIEWS_TIMELINE_RANK_SET_H
#define KYMO_VIEWS_TIMELINE_RANK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "views/query/rows.h"

#define RANK_SET_MOST 64 /* ranges */

struct rank_set {
	struct {
		int32_t from, to;
	} ranges[RANK_SET_MOST];
	size_t count; /* 0: all ranks, and what has none */
};

/* False: the text is not such a list, or has more ranges. NULL and "" are all ranks. */
bool rank_set_read(struct rank_set *set, const char *text);
/* NULL has all. A rank below 0 is none, which only the set of all ranks has. */
bool rank_set_has(const struct rank_set *set, int32_t rank);
/* A condition in SQL on a column of ranks; "true" for all. */
void rank_set_sql(const struct rank_set *set, const char *column, struct buf *out);
/* A query with each table that has ranks cut to these. */
void rank_set_cut(const struct rank_set *set, const char *sql, struct buf *out);
/* rows_each() and tables_number() with such a query. */
int rank_set_each(const struct rank_set *set, struct tables *tables, const char *sql,
		  int (*each)(const struct rows *rows, void *context), void *context,
		  struct kymo_error *err);
double rank_set_value(const struct rank_set *set, struct tables *tables, const char *sql,
		      double fallback);

#endif
