#include "views/stacks/stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MOST (4u << 20)

static uint32_t *stacks_slot_of(const struct stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint64_t hash = ((uint64_t)parent << 32 | frame) * 0x9e3779b97f4a7c15u;
	size_t mask = stacks->slot_count - 1, at = (hash ^ hash >> 29) & mask;

	while (stacks->slots[at] && (stacks->nodes[stacks->slots[at]].parent != parent ||
				     stacks->nodes[stacks->slots[at]].frame != frame))
		at = (at + 1) & mask;
	return &stacks->slots[at];
}

static bool stacks_grow(struct stacks *stacks)
{
	size_t room = stacks->room ? stacks->room * 2 : 1024;
	struct stacks_node *nodes;
	uint32_t *slots;

	if (room > NODES_MOST)
		return false;
	nodes = realloc(stacks->nodes, room * sizeof(nodes[0]));
	if (nodes)
		stacks->nodes = nodes;
	slots = nodes ? calloc(room * 2, sizeof(slots[0])) : NULL;
	if (!slots)
		return false;
	free(stacks->slots);
	stacks->slots = slots;
	stacks->slot_count = room * 2;
	stacks->room = room;
	for (size_t i = 1; i < stacks->count; i++)
		*stacks_slot_of(stacks, nodes[i].parent, nodes[i].frame) = (uint32_t)i;
	return true;
}

int stacks_init(struct stacks *stacks)
{
	*stacks = (struct stacks){ 0 };
	if (!stacks_grow(stacks))
		return -ENOMEM;
	stacks->nodes[0] = (struct stacks_node){ .frame = UINT32_MAX };
	stacks->count = 1;
	return 0;
}

void stacks_fini(struct stacks *stacks)
{
	free(stacks->nodes);
	free(stacks->slots);
	*stacks = (struct stacks){ 0 };
}

uint32_t stacks_child(struct stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint32_t *slot = stacks_slot_of(stacks, parent, frame);

	if (*slot)
		return *slot;
	if (stacks->count == stacks->room) {
		if (!stacks_grow(stacks))
			return parent;
		slot = stacks_slot_of(stacks, parent, frame);
	}
	stacks->nodes[stacks->count] = (struct stacks_node){ .frame = frame, .parent = parent };
	*slot = (uint32_t)stacks->count++;
	return *slot;
}

size_t stacks_path(const struct stacks *stacks, uint32_t node, uint32_t *out, size_t most)
{
	size_t depth = 0, skip;

	for (uint32_t at = node; at; at = stacks->nodes[at].parent)
		depth++;
	skip = depth > most ? depth - most : 0;
	for (; skip; skip--, depth--)
		node = stacks->nodes[node].parent;
	for (size_t i = depth; i; i--, node = stacks->nodes[node].parent)
		out[i - 1] = node;
	return depth;
}
