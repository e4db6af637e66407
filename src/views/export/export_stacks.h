/* Zones and Python samples, summed by stack, for folded and pprof. */
#ifndef KYMO_VIEWS_EXPORT_EXPORT_STACKS_H
#define KYMO_VIEWS_EXPORT_EXPORT_STACKS_H

#include "views/export/export.h"
#include "views/stacks/call_tree.h"

#define EXPORT_STACKS_DEPTH 4096 /* of a stack that is written; more is cut at its inner end */

/* The values of a node: zones, their self time, samples of Python stacks and what these stand
   for. */
enum { EXPORT_ZONES, EXPORT_SELF_NS, EXPORT_SAMPLES, EXPORT_SAMPLED_NS };

struct export_stacks {
	struct call_tree tree;
	uint32_t path[EXPORT_STACKS_DEPTH]; /* for call_tree_path() */
	bool marked; /* there are zones */
	bool weighted; /* the samples have a time */
};

/* The value that a format of one value shows; counts only where samples have no time. */
int export_stacks_value(const struct export *export, const struct export_stacks *own);
/* Sums zones, samples or both, then calls write. */
int export_stacks(struct export *export, bool zones, bool samples,
		  int (*write)(struct export *export, struct export_stacks *own));

#endif
