/* Where the boxes of a flame graph are: for the SVG file and for the text of `kymo flame`. */
#ifndef KYMO_VIEWS_EXPORT_FLAME_LAYOUT_H
#define KYMO_VIEWS_EXPORT_FLAME_LAYOUT_H

#include "views/export/export_stacks.h"

struct flame_layout_box {
	double left, width; /* shares of the whole */
	uint32_t depth; /* 1: outermost */
};

struct flame_layout {
	struct flame_layout_box *boxes; /* by node of the tree; [0] is unused */
	double whole; /* in the unit of the values */
	uint32_t deepest; /* of the boxes that are at least `least` wide */
};

/* Children stand in the order in which they were first seen. -ENOMEM. */
int flame_layout_make(struct flame_layout *layout, const struct call_tree *tree, int value,
		      double least);
void flame_layout_fini(struct flame_layout *layout);

#endif
