/* Memory that lives as long as a recording is open. */
#ifndef KYMO_STORE_ARENA_H
#define KYMO_STORE_ARENA_H

#include <stddef.h>

struct arena {
	struct arena_block *blocks;
};

/* Zeroed; NULL: none to be had. */
void *arena_take(struct arena *arena, size_t bytes);
void arena_free(struct arena *arena);

#endif
