/*
 * What a page shows of a recording, as JSON: blocks are rows of one table, each a name and a query.
 * The report embeds them; a server answers with the same.
 */
#ifndef KYMO_VIEWS_REPORT_BLOCKS_H
#define KYMO_VIEWS_REPORT_BLOCKS_H

#include <stdint.h>
#include <stdio.h>

#include "views/verdicts/facts.h"

/* "run":[…],"steps":[…],… without braces around them */
int blocks_write(struct tables *tables, const struct facts *facts, FILE *out,
		 struct kymo_error *err);

/* Those of them that can be told of one stretch of time: ,"steps":[…],… */
int blocks_write_range(struct tables *tables, int64_t from_ns, int64_t to_ns, FILE *out,
		       struct kymo_error *err);

#endif
