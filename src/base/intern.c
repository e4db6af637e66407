#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SLOTS_FIRST 256u

uint64_t intern_hash(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t word = 0;

	hash = intern_hash_number(hash, count);
	for (; count >= 8; at += 8, count -= 8) {
		memcpy(&word, at, 8);
		hash = intern_hash_number(hash, word);
	}
	for (word = 0; count; count--)
		word = word << 8 | at[count - 1];
	return intern_hash_number(hash, word);
}

static void intern_place(struct intern *intern, uint32_t number)
{
	size_t mask = intern->slot_count - 1, at = intern->hashes[number] & mask;

	while (intern->slots[at])
		at = (at + 1) & mask;
	intern->slots[at] = number + 1;
}

static bool intern_make_room(struct intern *intern)
{
	size_t more = intern->slot_count ? intern->slot_count * 2 : SLOTS_FIRST;
	uint32_t *slots;

	if (!grow((void **)&intern->hashes, &intern->room, intern->count, sizeof(uint32_t)))
		return false;
	if (2 * (intern->count + 1) <= intern->slot_count)
		return true;
	slots = calloc(more, sizeof(*slots));
	if (!slots)
		return false;
	free(intern->slots);
	intern->slots = slots;
	intern->slot_count = more;
	for (size_t i = 0; i < intern->count; i++)
		intern_place(intern, (uint32_t)i);
	return true;
}

uint32_t intern_add(struct intern *intern, uint64_t hash)
{
	uint32_t number = (uint32_t)intern->count;

	/* A slot is found by the 32 bits that are kept, so there are at most as many slots. */
	if (intern->count >= UINT32_MAX / 2 || !intern_make_room(intern))
		return INTERN_NONE;
	intern->hashes[number] = (uint32_t)hash;
	intern->count++;
	intern_place(intern, number);
	return number;
}

void intern_clear(struct intern *intern)
{
	if (intern->slots)
		memset(intern->slots, 0, intern->slot_count * sizeof(*intern->slots));
	intern->count = 0;
}

void intern_fini(struct intern *intern)
{
	free(intern->slots);
	free(intern->hashes);
	*intern = (struct intern){ 0 };
}
