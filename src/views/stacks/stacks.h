/* Distinct stacks as a tree: a node for each way to get to a frame. Node 0 is the root, and no
   frame. */
#ifndef KYMO_VIEWS_STACKS_STACKS_H
#define KYMO_VIEWS_STACKS_STACKS_H

#include <stddef.h>
#include <stdint.h>

#define STACKS_VALUES 3 /* what they mean is the caller's */

struct stacks_node {
	uint32_t frame, parent;
	double values[STACKS_VALUES];
};

struct stacks {
	struct stacks_node *nodes;
	size_t count, room;
	uint32_t *slots; /* node, or 0: empty */
	size_t slot_count;
};

int stacks_init(struct stacks *stacks); /* -ENOMEM */
void stacks_fini(struct stacks *stacks);
/* The node of a frame below parent. Where there is no room for one (4 million, or memory), parent
   itself. */
uint32_t stacks_child(struct stacks *stacks, uint32_t parent, uint32_t frame);
/* Nodes from the outermost to this one, without the root; how many. At most `most` of them, the
   outermost. */
size_t stacks_path(const struct stacks *stacks, uint32_t node, uint32_t *out, size_t most);

#endif
