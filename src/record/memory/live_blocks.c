/*
 * Live blocks by address: a shadow of 8 bytes for each 16 bytes of the program's memory. Only
 * shadow pages that hold an entry are touched. (Addresses that are odd multiples of 8, which few
 * allocators return, have a shadow of their own.) The thread that holds the memory writes its
 * entry, so no thread waits.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "record/memory/memory.h"

#define REGION_BITS 21 /* 2 MiB of the program */
#define REGIONS (1u << 16) /* 128 GiB of it */
#define LEAF_BYTES (1ull << (REGION_BITS - 1))
#define CHUNK_BYTES (32 * LEAF_BYTES)
#define CHUNKS (REGIONS / 32)

uint8_t memory_filter[1u << 15];

static struct region {
	uint64_t number; /* number of the region + 1; 0: free */
	uint64_t *leaf;
} regions[REGIONS];

/* Leaves are cut from chunks, to keep the number of mappings small. */
static char *chunks[CHUNKS];
static uint64_t leaves_used;

/* If every address has an entry, the filter only costs time. */
static inline bool is_filtered(void)
{
	return kymo__load_relaxed(&memory_mode) != KYMO_MEMORY_EXACT;
}

/* By system call: this mapping is not the program's memory. */
static void *live_blocks_map(size_t bytes)
{
	long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

static char *chunk_at(uint64_t index)
{
	char *chunk, *none = NULL;

	if (index >= CHUNKS)
		return NULL;
	chunk = kymo__load_acquire(&chunks[index]);
	if (chunk)
		return chunk;
	chunk = live_blocks_map(CHUNK_BYTES);
	if (!chunk)
		return NULL;
	if (kymo__cas_acq_rel_acquire(&chunks[index], &none, chunk))
		return chunk;
	syscall(SYS_munmap, chunk, CHUNK_BYTES);
	return none;
}

static uint64_t *leaf_make(void)
{
	uint64_t number = kymo__fetch_add_relaxed(&leaves_used, 1);
	char *chunk = chunk_at(number / 32);

	return chunk ? (uint64_t *)(void *)(chunk + number % 32 * LEAF_BYTES) : NULL;
}

static uint64_t *leaf_of(struct region *region, bool make)
{
	uint64_t *leaf = kymo__load_acquire(&region->leaf), *none = NULL;

	if (leaf || !make)
		return leaf;
	leaf = leaf_make();
	if (!leaf || kymo__cas_acq_rel_acquire(&region->leaf, &none, leaf))
		return leaf;
	return none; /* another thread was first; ours stays unused */
}

/* The entry of the address; NULL: no region, or no room for one. */
static uint64_t *entry_of(const void *ptr, bool make)
{
	uint64_t odd = (uintptr_t)ptr >> 3 & 1;
	uint64_t wanted = ((uintptr_t)ptr >> REGION_BITS << 1 | odd) + 1;
	uint32_t at = (uint32_t)(wanted * 0x9E3779B97F4A7C15ull >> 48);

	for (uint32_t i = 0; i < 256; i++, at = (at + 1) % REGIONS) {
		uint64_t number = kymo__load_acquire(&regions[at].number);
		uint64_t *leaf;

		if (!number && make &&
		    kymo__cas_acq_rel_acquire(&regions[at].number, &number, wanted))
			number = wanted;
		if (!number)
			return NULL;
		if (number != wanted)
			continue;
		leaf = leaf_of(&regions[at], make);
		return leaf ? &leaf[((uintptr_t)ptr >> 4) % (LEAF_BYTES / 8)] : NULL;
	}
	return NULL;
}

/* Saturated counters stay saturated: lookups are then only slower. */
static void filter_add(const void *ptr, int change)
{
	uint8_t *cell = &memory_filter[memory_filter_of(ptr)];
	uint8_t now = kymo__load_relaxed(cell);

	while (now != 255 && !kymo__cas_weak_relaxed(cell, &now, (uint8_t)(now + change)))
		;
}

/* Saturated counters find entries of exact mode, which were not counted. */
void memory_live_unfilter(void)
{
	memset(memory_filter, 255, sizeof(memory_filter));
}

bool memory_live_put(const void *ptr, uint64_t entry)
{
	uint64_t *at = entry_of(ptr, true);

	if (!at)
		return false;
	kymo__store_relaxed(at, entry);
	if (is_filtered())
		filter_add(ptr, 1);
	return true;
}

uint64_t memory_live_take(const void *ptr)
{
	uint64_t *at = entry_of(ptr, false);
	uint64_t entry = at ? kymo__load_relaxed(at) : 0;

	if (!entry)
		return 0;
	kymo__store_relaxed(at, 0);
	if (is_filtered())
		filter_add(ptr, -1);
	return entry;
}

/* Nothing is tracked from now on. The pages are returned to the kernel and read as zero. */
void memory_live_clear(void)
{
	for (uint32_t i = 0; i < CHUNKS && chunks[i]; i++)
		syscall(SYS_madvise, chunks[i], CHUNK_BYTES, MADV_DONTNEED);
	memset(memory_filter, 0, sizeof(memory_filter));
}
