#include "views/stacks/call_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"

#define NODES_MOST (4u << 20)

static uint64_t call_tree_hash(const struct call_tree_node *node)
{
	return intern_hash_number(0, (uint64_t)node->parent << 32 | node->frame);
}

static bool call_tree_same(const void *owner, uint32_t number, const void *key)
{
	const struct call_tree *tree = owner;
	const struct call_tree_node *node = &tree->nodes[number], *wanted = key;

	return node->parent == wanted->parent && node->frame == wanted->frame;
}

static uint32_t call_tree_add(struct call_tree *tree, const struct call_tree_node *node,
			      uint64_t hash)
{
	uint32_t number = INTERN_NONE;

	if (tree->count < NODES_MOST &&
	    grow((void **)&tree->nodes, &tree->room, tree->count, sizeof(*node)))
		number = intern_add(&tree->index, hash);
	if (number != INTERN_NONE)
		tree->nodes[tree->count++] = *node;
	else
		tree->full = true;
	return number;
}

int call_tree_init(struct call_tree *tree)
{
	const struct call_tree_node root = { .frame = UINT32_MAX };

	*tree = (struct call_tree){ 0 };
	return call_tree_add(tree, &root, call_tree_hash(&root)) == INTERN_NONE ? -ENOMEM : 0;
}

void call_tree_fini(struct call_tree *tree)
{
	free(tree->nodes);
	intern_fini(&tree->index);
	*tree = (struct call_tree){ 0 };
}

uint32_t call_tree_child(struct call_tree *tree, uint32_t parent, uint32_t frame)
{
	const struct call_tree_node node = { .frame = frame, .parent = parent };
	uint64_t hash = call_tree_hash(&node);
	uint32_t number = intern_find(&tree->index, hash, call_tree_same, tree, &node);

	if (number == INTERN_NONE)
		number = call_tree_add(tree, &node, hash);
	return number == INTERN_NONE ? parent : number;
}

size_t call_tree_path(const struct call_tree *tree, uint32_t node, uint32_t *out, size_t most)
{
	size_t depth = 0, skip;

	for (uint32_t at = node; at; at = tree->nodes[at].parent)
		depth++;
	skip = depth > most ? depth - most : 0;
	for (; skip; skip--, depth--)
		node = tree->nodes[node].parent;
	for (size_t i = depth; i; i--, node = tree->nodes[node].parent)
		out[i - 1] = node;
	return depth;
}
