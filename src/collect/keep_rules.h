/* kymo run --keep zones=10m,steps=all,samples=1G: how long, or how much, of each table stays on
   disk. */
#ifndef KYMO_COLLECT_KEEP_RULES_H
#define KYMO_COLLECT_KEEP_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define KEEP_RULES_MOST 16

struct keep_rule {
	char tables[56]; /* "trace.zones", or "host.*" */
	char also[56]; /* the same; "": none */
	bool all; /* kept as long as something else can be removed */
	uint64_t age_ns; /* 0: no limit */
	uint64_t bytes; /* 0: no limit */
};

struct keep_rules {
	struct keep_rule list[KEEP_RULES_MOST];
	unsigned count;
};

/* 0, or -EINVAL and a sentence; *rules is then unchanged. */
int keep_rules_parse(const char *text, struct keep_rules *rules, struct kymo_error *err);
/* The rule of a table; -1: none. */
int keep_rules_find(const struct keep_rules *rules, const char *table);

#endif
