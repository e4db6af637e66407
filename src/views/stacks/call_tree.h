/*
 * A tree of callers: one node for each path of frames from the outermost one. Node 0 is the root
 * and has no frame. A frame is a number whose meaning is up to the caller.
 */
#ifndef KYMO_VIEWS_STACKS_CALL_TREE_H
#define KYMO_VIEWS_STACKS_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

#define CALL_TREE_VALUES 4 /* sums of a node; their meaning is up to the caller */

struct call_tree_node {
	uint32_t frame, parent; /* a parent precedes its children */
	double values[CALL_TREE_VALUES];
};

struct call_tree {
	struct call_tree_node *nodes;
	size_t count, room;
	struct intern index; /* of (parent, frame) */
	bool full; /* a node could not be added */
};

int call_tree_init(struct call_tree *tree); /* -ENOMEM */
void call_tree_fini(struct call_tree *tree);
/* The node of a frame below `parent`. If the tree has 4 Mi nodes or memory is out, `parent` itself,
   and `full` is set. */
uint32_t call_tree_child(struct call_tree *tree, uint32_t parent, uint32_t frame);
/* The nodes from the outermost one to `node`, without the root. Returns their count. A path longer
   than `most` is cut at its inner end. */
size_t call_tree_path(const struct call_tree *tree, uint32_t node, uint32_t *out, size_t most);

#endif
