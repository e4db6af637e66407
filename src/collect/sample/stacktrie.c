#include "collect/sample/stacktrie.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
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
	if (trie->index.count < trie->most)
		return;
	trie->before += (uint32_t)trie->index.count;
	intern_clear(&trie->index);
}

static bool same_node(const void *nodes, uint32_t number, const void *wanted)
{
	const struct stacktrie_node *a = (const struct stacktrie_node *)nodes + number, *b = wanted;

	return a->parent == b->parent && a->name == b->name && a->line == b->line;
}

static uint32_t add_node(struct stacktrie *trie, const struct stacktrie_node *wanted)
{
	struct schema_frame_row row = { .parent = wanted->parent,
					.name = wanted->name,
					.line = wanted->line };
	uint64_t hash = intern_hash_number(
		intern_hash_number(0, (uint64_t)wanted->parent << 32 | wanted->name), wanted->line);
	uint32_t number = intern_find(&trie->index, hash, same_node, trie->nodes, wanted);

	if (number != INTERN_NONE)
		return trie->before + number + 1;
	if (!grow((void **)&trie->nodes, &trie->room, trie->index.count, sizeof(*wanted)))
		return 0;
	number = intern_add(&trie->index, hash);
	if (number == INTERN_NONE)
		return 0;
	trie->nodes[number] = *wanted;
	row.node = trie->before + number + 1;
	kymo__append(SCHEMA_FRAMES, &row);
	return row.node;
}

uint32_t stacktrie_name_of(const struct pycode *code)
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

/* Step `at` of a path, as of the last stack or anew; NULL: out of memory. The steps after a new one
   are forgotten: their nodes have another parent. */
static struct stacktrie_step *take_step(struct stacktrie *trie, struct stacktrie_path *path,
					size_t at, const struct stacktrie_node *wanted)
{
	struct stacktrie_step *step = at < path->count ? &path->steps[at] : NULL;

	if (step && step->name == wanted->name && step->line == wanted->line)
		return step;
	path->count = at;
	if (!grow((void **)&path->steps, &path->room, at, sizeof(*step)))
		return NULL;
	step = &path->steps[at];
	*step = (struct stacktrie_step){ wanted->name, wanted->line, add_node(trie, wanted) };
	if (!step->node)
		return NULL;
	path->count = at + 1;
	return step;
}

uint32_t stacktrie_add(struct stacktrie *trie, const struct pystack_thread *thread,
		       struct stacktrie_path *path)
{
	bool cut = thread->frame_count > trie->depth_most;
	/* Outer frames of a deep recursion, which do not fit a ring. */
	uint32_t node = cut ? add_placeholder(trie, 0, "(outer frames)") : 0;
	size_t from = cut ? trie->depth_most : thread->frame_count;

	if (cut && !node)
		return 0;
	if (cut || path->before != trie->before)
		path->count = 0;
	path->before = trie->before;
	for (size_t i = from; i-- > 0;) {
		const struct pystack_frame *frame = &thread->frames[i];
		struct stacktrie_node wanted = { .parent = node,
						 .name = stacktrie_name_of(frame->code),
						 .line = (uint32_t)frame->line };
		const struct stacktrie_step *step = take_step(trie, path, from - 1 - i, &wanted);

		if (!step)
			return 0;
		node = step->node;
	}
	path->count = cut ? 0 : from;
	return thread->partial ? add_placeholder(trie, node, PYSTACK_CHANGING) : node;
}

void stacktrie_forget(struct stacktrie_path *path)
{
	free(path->steps);
	memset(path, 0, sizeof(*path));
}

void stacktrie_fini(struct stacktrie *trie)
{
	free(trie->nodes);
	intern_fini(&trie->index);
	memset(trie, 0, sizeof(*trie));
}
