/* The flame graph of zones: a tree of callers below each lane, with total times. */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_FLAME_H
#define KYMO_VIEWS_TIMELINE_ZONE_FLAME_H

#include "views/stacks/call_tree.h"
#include "views/timeline/zone_model.h"

/* A frame is a name of the model, or a lane of it with this bit, directly below the root. */
#define ZONE_FLAME_LANE UINT32_C(0x80000000)

enum { ZONE_FLAME_TOTAL_NS }; /* of a node's values */

struct zone_flame_range {
	int64_t from_ns, to_ns; /* zones are cut there; from INT64_MIN to INT64_MAX: all */
	int64_t lane; /* -1: all; collectives and critical paths repeat time of others */
	const struct rank_set *ranks; /* NULL: all */
};

/* 0, or -ENOMEM. *out is to be finished in any case. */
int zone_flame_make(const struct zone_model *model, const struct zone_flame_range *range,
		    struct call_tree *out);
/* Items [name, parent, total_ns] of a JSON array. A lane has no parent, -1, and the name -1 - lane.
   A node below 0.02 % of the whole is left out. numbers[]: where not NULL, names are renumbered
   from 0 in order of appearance; numbers[name] becomes the new number + 1, *out_names their
   count. Returns 0 or -ENOMEM. */
int zone_flame_json(const struct call_tree *tree, uint32_t *numbers, size_t *out_names,
		    struct buf *out);
double zone_flame_whole_ns(const struct call_tree *tree);

#endif
