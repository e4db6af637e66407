#include "store/arena.h"

#include <stdint.h>
#include <stdlib.h>

#define BLOCK_BYTES (64u << 10)

struct arena_block {
	struct arena_block *next;
	size_t used, room;
	_Alignas(16) unsigned char bytes[];
};

static struct arena_block *block_add(struct arena *arena, size_t bytes)
{
	size_t room = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
	struct arena_block *block = room > SIZE_MAX - sizeof(*block)
					    ? NULL
					    : calloc(1, sizeof(*block) + room);

	if (!block)
		return NULL;
	block->room = room;
	/* A large block is full at once: the previous one continues to be filled. */
	if (room == bytes && arena->blocks) {
		block->next = arena->blocks->next;
		arena->blocks->next = block;
	} else {
		block->next = arena->blocks;
		arena->blocks = block;
	}
	return block;
}

void *arena_take(struct arena *arena, size_t bytes)
{
	struct arena_block *block = arena->blocks;
	void *taken;

	if (bytes > SIZE_MAX - 15)
		return NULL;
	bytes = (bytes + 15) & ~(size_t)15;
	if (!block || block->room - block->used < bytes)
		block = block_add(arena, bytes);
	if (!block)
		return NULL;
	taken = block->bytes + block->used;
	block->used += bytes;
	return taken;
}

void arena_free(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}
