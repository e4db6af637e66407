/* Stacks as nodes of a call tree: rows of python.frames, written once for each node. */
#ifndef KYMO_COLLECT_SAMPLE_STACKTRIE_H
#define KYMO_COLLECT_SAMPLE_STACKTRIE_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "collect/python/pystack.h"

struct stacktrie_node {
	uint32_t parent, name, line;
};

struct stacktrie {
	struct stacktrie_node *nodes; /* by number of the index */
	size_t room;
	struct intern index;
	uint32_t before; /* nodes that were forgotten: a node is before + its number + 1 */
	size_t most; /* nodes; at this number it starts again, with new numbers */
	size_t depth_most; /* innermost frames kept of a stack */
};

/* The nodes of a thread's last stack, outermost first: where its next stack begins in the same way,
   they are not searched again. All zero at first. */
struct stacktrie_path {
	struct stacktrie_step {
		uint32_t name, line, node;
	} * steps;
	size_t count, room;
	uint32_t before; /* of the trie */
};

/* most: limit of nodes for a ring, so that the nodes of every kept sample are kept, too; 0: rows
   are not overwritten. */
void stacktrie_init(struct stacktrie *trie, size_t most);
/* Call it once before each sample. */
void stacktrie_begin(struct stacktrie *trie);
/* The node of the thread's innermost frame; 0: no frames, or out of memory. */
uint32_t stacktrie_add(struct stacktrie *trie, const struct pystack_thread *thread,
		       struct stacktrie_path *path);
void stacktrie_forget(struct stacktrie_path *path);
/* The number of the name of a function. */
uint32_t stacktrie_name_of(const struct pycode *code);
void stacktrie_fini(struct stacktrie *trie);

#endif
