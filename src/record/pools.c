/*
 * Live bytes of the program's memory pools, for code marked for another tool. A free does not carry
 * the size, so the sizes of live pointers are kept here: in sets of 16. No pointer ever moves; a
 * pointer whose set is full is not tracked.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "kymo/marked.h"
#include "record/record.h"

#define SETS 4096u /* a power of two */
#define WAYS 16u
#define POOLS 64u

struct pool {
	uint32_t name; /* of its counter; 0: free; atomic */
	uint32_t text_state; /* 0 none, 1 being filled, 2 valid; atomic */
	/* the pool's name, to save the lookup of its counter's name; empty if too long */
	char text[48];
	int64_t live_bytes; /* atomic */
};

/* Written by the thread that claimed the slot, until it is released; the pointer is stored last. */
struct live_pointer {
	uintptr_t ptr; /* 0: free; TAKEN: being filled; atomic */
	uint64_t bytes; /* both atomic: lookups of other pointers may read them */
	uint32_t pool;
	uint32_t reserved;
};
#define TAKEN ((uintptr_t)-1)

static struct pool pools[POOLS]; /* in order of arrival; the last one never gets a name */
static struct live_pointer *live_pointers; /* SETS * WAYS, mapped at the first allocation; atomic */
static uint64_t not_tracked;

static struct live_pointer *pointers(void)
{
	struct live_pointer *now = kymo__load_acquire(&live_pointers);
	size_t bytes = (size_t)SETS * WAYS * sizeof(*now);
	int kept_errno = errno; /* the program's */
	void *map;

	if (KYMO__LIKELY(now != NULL))
		return now;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (map == MAP_FAILED) {
		errno = kept_errno;
		return NULL;
	}
	if (!kymo__cas_acq_rel_acquire(&live_pointers, &now, map))
		munmap(map, bytes);
	else
		now = map;
	errno = kept_errno;
	return now;
}

static struct live_pointer *set_of(const void *ptr)
{
	struct live_pointer *all = pointers();
	uint64_t hash = (uint64_t)(uintptr_t)ptr * 0x9e3779b97f4a7c15ull;

	return all ? &all[(hash >> 52 & (SETS - 1)) * WAYS] : NULL;
}

/* By name; the last pool is shared by nameless ones and those beyond the limit. */
static struct pool *pool_named(const char *name)
{
	char text[128];
	uint32_t id, expected, i;

	snprintf(text, sizeof(text), *name ? "memory: %s" : "memory", name);
	id = kymo_name(text);
	for (i = id ? 0 : POOLS - 1; i < POOLS - 1; i++) {
		expected = 0;
		if (kymo__load_relaxed(&pools[i].name) == id ||
		    kymo__cas_relaxed(&pools[i].name, &expected, id) || expected == id)
			break;
	}
	return &pools[i];
}

static void pool_keep_text(struct pool *pool, const char *name)
{
	uint32_t none = 0;

	if (strlen(name) < sizeof(pool->text) && pool != &pools[POOLS - 1] &&
	    kymo__cas_relaxed(&pool->text_state, &none, 1)) {
		strcpy(pool->text, name);
		/* Pairs with the acquire in pool_of(). */
		kymo__store_release(&pool->text_state, 2);
	}
}

static struct pool *pool_of(const char *name)
{
	struct pool *pool;

	name = name ? name : "";
	for (pool = pools; kymo__load_relaxed(&pool->name); pool++)
		if (kymo__load_acquire(&pool->text_state) == 2 && !strcmp(pool->text, name))
			return pool;
	pool = pool_named(name);
	pool_keep_text(pool, name);
	return pool;
}

static void pool_changed(struct pool *pool, int64_t bytes)
{
	int64_t live = kymo__add_fetch_relaxed(&pool->live_bytes, bytes);
	uint32_t name = kymo__load_relaxed(&pool->name);

	kymo_counter_id(name ? name : kymo_name("memory: other pools"), (double)live);
}

/* False: the set is full. */
static bool pools_remember(const void *ptr, size_t bytes, uint32_t pool)
{
	struct live_pointer *slot = set_of(ptr);

	for (uint32_t i = 0; slot && i < WAYS; i++, slot++) {
		uintptr_t expected = 0;

		if (!kymo__cas_acquire(&slot->ptr, &expected, TAKEN))
			continue;
		kymo__store_relaxed(&slot->bytes, bytes);
		kymo__store_relaxed(&slot->pool, pool);
		/* Pairs with the acquire in pools_forget(): the size is visible with the
		   pointer. */
		kymo__store_release(&slot->ptr, (uintptr_t)ptr);
		return true;
	}
	return false;
}

/* The bytes of ptr in that pool; -1: unknown. */
static int64_t pools_forget(const void *ptr, uint32_t pool)
{
	struct live_pointer *slot = set_of(ptr);

	for (uint32_t i = 0; slot && i < WAYS; i++, slot++) {
		uintptr_t expected = (uintptr_t)ptr;

		if (kymo__load_acquire(&slot->ptr) == expected &&
		    kymo__load_relaxed(&slot->pool) == pool &&
		    kymo__cas_acquire(&slot->ptr, &expected, TAKEN)) {
			int64_t bytes = (int64_t)kymo__load_relaxed(&slot->bytes);

			kymo__store_release(&slot->ptr, 0);
			return bytes;
		}
	}
	return -1;
}

void kymo__pool_alloc(const char *pool, const void *ptr, size_t bytes)
{
	struct pool *of;

	if (!ptr || !kymo_enabled())
		return;
	of = pool_of(pool);
	if (pools_remember(ptr, bytes, (uint32_t)(of - pools)))
		pool_changed(of, (int64_t)bytes);
	else
		kymo_counter("memory: not tracked",
			     (double)kymo__add_fetch_relaxed(&not_tracked, 1));
}

void kymo__pool_free(const char *pool, const void *ptr)
{
	struct pool *of;
	int64_t bytes;

	/* Also while off, once anything is tracked: otherwise live bytes would never decrease. */
	if (!ptr || !kymo__load_relaxed(&live_pointers))
		return;
	of = pool_of(pool);
	bytes = pools_forget(ptr, (uint32_t)(of - pools));
	if (bytes >= 0)
		pool_changed(of, -bytes);
}

void kymo__pool_discard(const char *pool)
{
	struct live_pointer *slot = kymo__load_acquire(&live_pointers);
	struct pool *of;
	int64_t gone = 0;

	if (!slot)
		return;
	of = pool_of(pool);
	for (uint32_t i = 0; i < SETS * WAYS; i++, slot++) {
		uintptr_t ptr = kymo__load_acquire(&slot->ptr);
		int64_t bytes = -1;

		if (ptr && ptr != TAKEN)
			bytes = pools_forget((const void *)ptr, (uint32_t)(of - pools));
		gone += bytes > 0 ? bytes : 0;
	}
	pool_changed(of, -gone);
}
