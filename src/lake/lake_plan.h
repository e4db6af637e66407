/* Which tables are in which tier of a lake, and how a flush writes them. */
#ifndef KYMO_LAKE_PLAN_H
#define KYMO_LAKE_PLAN_H

#include <stdbool.h>

enum lake_kind {
	LAKE_ROWS, /* rows of streams: a flush adds a file with the new ones */
	LAKE_WHOLE, /* computed anew: a flush replaces the file */
	LAKE_LATER, /* as WHOLE, but from all rows: not while the program runs */
	LAKE_READ, /* concerns all hosts: computed when the lake is read */
};

struct lake_plan {
	enum lake_kind kind;
	int tier;
	const char *order; /* of LAKE_ROWS: ORDER BY; NULL: as they were recorded */
};

/* Tables of the program are rows of tier 2. */
struct lake_plan lake_plan_of(const char *schema, const char *name);

#endif
