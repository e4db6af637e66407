#include "views/export/flame_layout.h"

#include <errno.h>
#include <stdlib.h>

/* The width of a node includes that of its children, which come after it. */
static void add_up(struct flame_layout_box *boxes, const struct call_tree *tree, int value)
{
	for (size_t i = 0; i < tree->count; i++)
		boxes[i].width = tree->nodes[i].values[value];
	for (size_t i = tree->count; i-- > 1;)
		boxes[tree->nodes[i].parent].width += boxes[i].width;
}

/* room: where the next child of each node begins. */
static void place(struct flame_layout *layout, const struct call_tree *tree, double *room,
		  double least)
{
	struct flame_layout_box *boxes = layout->boxes;

	for (size_t i = 1; i < tree->count; i++) {
		uint32_t parent = tree->nodes[i].parent;

		boxes[i].width /= layout->whole;
		boxes[i].left = room[parent];
		boxes[i].depth = boxes[parent].depth + 1;
		room[i] = room[parent];
		room[parent] += boxes[i].width;
		if (boxes[i].width >= least && boxes[i].depth > layout->deepest)
			layout->deepest = boxes[i].depth;
	}
}

int flame_layout_make(struct flame_layout *layout, const struct call_tree *tree, int value,
		      double least)
{
	double *room = calloc(tree->count, sizeof(*room));

	*layout = (struct flame_layout){ .boxes = calloc(tree->count, sizeof(*layout->boxes)) };
	if (!room || !layout->boxes) {
		free(room);
		flame_layout_fini(layout);
		return -ENOMEM;
	}
	add_up(layout->boxes, tree, value);
	layout->whole = layout->boxes[0].width;
	if (layout->whole > 0)
		place(layout, tree, room, least);
	free(room);
	return 0;
}

void flame_layout_fini(struct flame_layout *layout)
{
	free(layout->boxes);
	layout->boxes = NULL;
}
