/* kymo run --keep zones=10m,steps=all,samples=1h:10ms,1w:1s: how long, or how much, of each table
   stays on disk, and how its older rows are thinned. */
#ifndef KYMO_COLLECT_KEEP_RULES_H
#define KYMO_COLLECT_KEEP_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define KEEP_RULES_MOST 16
#define KEEP_LEVELS_MOST 4
#define KEEP_FOREVER UINT64_MAX /* an age */

/* Rows up to this age, one in each period. */
struct keep_level {
	uint64_t age_ns;
	uint64_t period_ns; /* 0: as recorded, only in the first level */
};

struct keep_rule {
	char tables[56]; /* "trace.zones", or "host.*" */
	char also[56]; /* the same; "": none */
	bool all; /* kept as long as something else can be removed */
	uint64_t age_ns; /* 0: no limit */
	uint64_t bytes; /* 0: no limit */
	/* by age; none: rows are removed at the limits above. Otherwise there are no such limits */
	struct keep_level levels[KEEP_LEVELS_MOST];
	unsigned level_count;
};

struct keep_rules {
	struct keep_rule list[KEEP_RULES_MOST];
	unsigned count;
};

/* 0, or -EINVAL and a sentence; *rules is then unchanged. */
int keep_rules_parse(const char *text, struct keep_rules *rules, struct kymo_error *err);
/* The rule of a table; -1: none. */
int keep_rules_find(const struct keep_rules *rules, const char *table);
/* The period in which rows of that table are to be recorded; 0: none is given. */
uint64_t keep_rules_first_period(const struct keep_rules *rules, const char *table);

#endif
