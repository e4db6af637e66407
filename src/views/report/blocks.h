/*
 * The data of a page, as JSON: blocks are rows of one table, each a name and a query. The HTML
 * report embeds them; the server returns the same.
 */
#ifndef KYMO_VIEWS_REPORT_BLOCKS_H
#define KYMO_VIEWS_REPORT_BLOCKS_H

#include <stdint.h>
#include <stdio.h>

#include "views/timeline/rank_set.h"
#include "views/verdicts/facts.h"

/* "run":[…],"steps":[…],… without braces around them */
int blocks_write(struct tables *tables, const struct facts *facts, FILE *out,
		 struct kymo_error *err);

/* The part of them that takes little time whatever the number of operations: without verdicts and
   without sums over devices and stack samples. "partial":true,… */
int blocks_write_first(struct tables *tables, const struct facts *facts, FILE *out,
		       struct kymo_error *err);

/* The blocks that exist for a time range, of some ranks (NULL: all): ,"steps":[…],… */
int blocks_write_range(struct tables *tables, int64_t from_ns, int64_t to_ns,
		       const struct rank_set *ranks, FILE *out, struct kymo_error *err);

#endif
