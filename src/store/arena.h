/* Memory that is freed when a recording is closed. */
#ifndef KYMO_STORE_ARENA_H
#define KYMO_STORE_ARENA_H

#include <stddef.h>

struct arena {
	struct arena_block *blocks;
};

/* Zeroed memory; NULL: out of memory. */
void *arena_take(struct arena *arena, size_t bytes);
void arena_free(struct arena *arena);

#endif
