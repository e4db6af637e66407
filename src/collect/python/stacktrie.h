/* Stacks as nodes of a tree of callers: rows of python.frames, written when a node is new. */
#ifndef KYMO_COLLECT_PYTHON_STACKTRIE_H
#define KYMO_COLLECT_PYTHON_STACKTRIE_H

#include <stddef.h>
#include <stdint.h>

#include "collect/python/pystack.h"

struct stacktrie_node {
	uint32_t parent, name, line;
	uint32_t node; /* 0: free */
};

struct stacktrie {
	struct stacktrie_node *slots;
	size_t count, room;
	uint32_t last; /* node that was given out */
	size_t most; /* nodes; then it begins anew, with new numbers */
	size_t depth_most; /* innermost frames of a stack that are kept */
};

/* most: so that the nodes of every sample that is kept are kept too, where rows are overwritten; 0:
   they are not. */
void stacktrie_init(struct stacktrie *trie, size_t most);
/* The node of the thread's innermost frame; 0: it has none, or no memory. Once before each
   sample: */
void stacktrie_begin(struct stacktrie *trie);
uint32_t stacktrie_add(struct stacktrie *trie, const struct pystack_thread *thread);
void stacktrie_fini(struct stacktrie *trie);

#endif
