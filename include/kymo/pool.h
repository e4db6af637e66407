/*
 * Inside kymo: free indexes as a stack without locks, for any thread and from signal handlers. The
 * pool is one word, 0 when empty: low half the first index + 1, high half a tag. Each change raises
 * the tag, so that a pop that was overtaken by a pop and a push of the same index fails (ABA).
 *
 * next_of(index) is the word of an entry that names the next free one. It is read while another
 * thread may take the entry, so the memory stays mapped for as long as the pool is used.
 */
#ifndef KYMO_POOL_H
#define KYMO_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/atomic.h>

/* The entry as this thread leaves it is what the thread that pops it sees. */
static inline void kymo__pool_push(uint64_t *pool, uint32_t index, uint32_t *(*next_of)(uint32_t))
{
	uint64_t old = kymo__load_relaxed(pool);

	do
		kymo__store_relaxed(next_of(index), (uint32_t)old);
	while (!kymo__cas_weak_release(pool, &old, ((old >> 32) + 1) << 32 | (index + 1)));
}

/* False: the pool is empty. */
static inline bool kymo__pool_pop(uint64_t *pool, uint32_t *(*next_of)(uint32_t),
				  uint32_t *out_index)
{
	uint64_t old = kymo__load_acquire(pool);

	while ((uint32_t)old) {
		uint32_t index = (uint32_t)old - 1;
		uint64_t rest = kymo__load_relaxed(next_of(index));

		if (kymo__cas_weak_acquire_acquire(pool, &old, ((old >> 32) + 1) << 32 | rest)) {
			*out_index = index;
			return true;
		}
	}
	return false;
}

#endif
