#include "collect/python/stacktrie.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "record/record.h"

#define NODES_MOST (1u << 22) /* 100 MB of memory */

void stacktrie_init(struct stacktrie *trie, size_t most)
{
	memset(trie, 0, sizeof(*trie));
	trie->most = most && most < NODES_MOST ? most : NODES_MOST;
	trie->depth_most = most ? most / 4 : PYSTACK_DEEPEST;
}

void stacktrie_begin(struct stacktrie *trie)
{
	if (trie->count < trie->most)
		return;
	memset(trie->slots, 0, trie->room * sizeof(*trie->slots));
	trie->count = 0;
}

static struct stacktrie_node *stacktrie_find(struct stacktrie_node *slots, size_t room,
					     const struct stacktrie_node *wanted)
{
	uint64_t hash = ((uint64_t)wanted->parent << 32 | wanted->name) * 0x9e3779b97f4a7c15ull;
	size_t at;

	hash = (hash ^ wanted->line) * 0xff51afd7ed558ccdull;
	at = (size_t)(hash >> 20);
	for (;; at++) {
		struct stacktrie_node *slot = &slots[at & (room - 1)];

		if (!slot->node || (slot->parent == wanted->parent && slot->name == wanted->name &&
				    slot->line == wanted->line))
			return slot;
	}
}

static int stacktrie_make_room(struct stacktrie *trie)
{
	size_t room = trie->room ? 2 * trie->room : 1024;
	struct stacktrie_node *slots;

	if (trie->room && trie->count < trie->room / 2)
		return 0;
	slots = calloc(room, sizeof(*slots));
	if (!slots)
		return -1;
	for (size_t i = 0; i < trie->room; i++)
		if (trie->slots[i].node)
			*stacktrie_find(slots, room, &trie->slots[i]) = trie->slots[i];
	free(trie->slots);
	trie->slots = slots;
	trie->room = room;
	return 0;
}

static uint32_t add_node(struct stacktrie *trie, const struct stacktrie_node *wanted)
{
	struct schema_frame_row row = { .parent = wanted->parent,
					.name = wanted->name,
					.line = wanted->line };
	struct stacktrie_node *slot;

	if (stacktrie_make_room(trie))
		return 0;
	slot = stacktrie_find(trie->slots, trie->room, wanted);
	if (slot->node)
		return slot->node;
	row.node = ++trie->last;
	*slot = *wanted;
	slot->node = row.node;
	trie->count++;
	kymo__append(SCHEMA_FRAMES, &row);
	return row.node;
}

static uint32_t stacktrie_name_of(const struct pycode *code)
{
	struct pycode *mine = (struct pycode *)code; /* caches its name id */

	if (!mine->name_id)
		mine->name_id = kymo__intern(code->name, strlen(code->name), code->file,
					     strlen(code->file), (uint32_t)code->first_line,
					     KYMO_SOURCE_PYTHON, 0);
	return mine->name_id;
}

/* One node for all frames that are left out, below their caller. */
static uint32_t add_placeholder(struct stacktrie *trie, uint32_t parent, const char *what)
{
	struct stacktrie_node wanted = { .parent = parent, .name = kymo_name(what) };

	return add_node(trie, &wanted);
}

uint32_t stacktrie_add(struct stacktrie *trie, const struct pystack_thread *thread)
{
	bool cut = thread->frame_count > trie->depth_most;
	/* Outer frames of a deep recursion, which do not fit a ring. */
	uint32_t node = cut ? add_placeholder(trie, 0, "(outer frames)") : 0;

	if (cut && !node)
		return 0;
	for (size_t i = cut ? trie->depth_most : thread->frame_count; i-- > 0;) {
		struct stacktrie_node wanted = { .parent = node,
						 .name = stacktrie_name_of(thread->frames[i].code),
						 .line = (uint32_t)thread->frames[i].line };

		node = add_node(trie, &wanted);
		if (!node)
			return 0;
	}
	return thread->partial ? add_placeholder(trie, node, PYSTACK_CHANGING) : node;
}

void stacktrie_fini(struct stacktrie *trie)
{
	free(trie->slots);
	memset(trie, 0, sizeof(*trie));
}
