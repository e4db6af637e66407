/*
 * Numbers for keys: an index by hash over a list that the caller keeps. Equal keys get one number,
 * and numbers count from 0 in order of appearance, so entry `number` of the list holds its key.
 * For readers, views and collectors, never inside a target: it allocates.
 *
 *	uint64_t hash = intern_hash(line, name, bytes);
 *	uint32_t number = intern_find(&index, hash, same, list, &key);
 *
 *	if (number == INTERN_NONE)
 *		number = intern_add(&index, hash);	(and the caller appends the key to its list)
 */
#ifndef KYMO_BASE_INTERN_H
#define KYMO_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

struct intern {
	uint32_t *slots; /* number + 1; 0: free */
	size_t slot_count; /* a power of two, at least twice `count` */
	/* by number: tables grow and most keys differ without a look at the list */
	uint32_t *hashes;
	size_t count, room;
};

/* Mixes bytes into a hash. Chain calls for a key of several parts: the length of a part counts too,
   so ("ab", "c") and ("a", "bc") differ. Not for hashes that are stored. */
uint64_t intern_hash(uint64_t hash, const void *bytes, size_t count);
/* The same for a number. */
static inline uint64_t intern_hash_number(uint64_t hash, uint64_t number)
{
	hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

/* The number of a key, or INTERN_NONE. `same` compares it with entry `number` of the owner's list.
   Inline, so that the comparison is, too. */
static inline uint32_t intern_find(const struct intern *intern, uint64_t hash,
				   bool (*same)(const void *owner, uint32_t number,
						const void *key),
				   const void *owner, const void *key)
{
	size_t mask = intern->slot_count - 1, at = hash & mask;

	if (!intern->slot_count)
		return INTERN_NONE;
	for (; intern->slots[at]; at = (at + 1) & mask) {
		uint32_t number = intern->slots[at] - 1;

		if (intern->hashes[number] == (uint32_t)hash && same(owner, number, key))
			return number;
	}
	return INTERN_NONE;
}

/* The next number, for a key that intern_find() did not find; INTERN_NONE: out of memory, or all
   numbers are taken, and nothing has changed. */
uint32_t intern_add(struct intern *intern, uint64_t hash);
/* Forgets all keys and keeps the memory. */
void intern_clear(struct intern *intern);
void intern_fini(struct intern *intern);

#endif
