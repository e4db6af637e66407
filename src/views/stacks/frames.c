#include "views/stacks/frames.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t frames_mix(uint64_t hash, const char *bytes, size_t count)
{
	uint64_t word;

	for (; count >= 8; bytes += 8, count -= 8) {
		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	for (word = count; count; count--)
		word = word << 8 | (unsigned char)bytes[count - 1];
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

static uint64_t frames_hash_of(const struct frames_one *one)
{
	uint64_t hash = frames_mix((uint64_t)(uint32_t)one->line, one->name, one->name_bytes);

	return frames_mix(frames_mix(hash, one->source, one->source_bytes), one->file,
			  one->file_bytes);
}

static bool same(const struct frames_one *a, const struct frames_one *b)
{
	return a->line == b->line && a->name_bytes == b->name_bytes &&
	       a->source_bytes == b->source_bytes && a->file_bytes == b->file_bytes &&
	       !memcmp(a->name, b->name, a->name_bytes) &&
	       !memcmp(a->source, b->source, a->source_bytes) &&
	       !memcmp(a->file, b->file, a->file_bytes);
}

/* Where it is, or the empty slot where it belongs. */
static uint32_t *frames_slot_of(const struct frames *frames, const struct frames_one *one)
{
	size_t at = frames_hash_of(one) & (frames->slot_count - 1);

	while (frames->slots[at] && !same(&frames->list[frames->slots[at] - 1], one))
		at = (at + 1) & (frames->slot_count - 1);
	return &frames->slots[at];
}

static bool frames_grow(struct frames *frames)
{
	size_t room = frames->room ? frames->room * 2 : 256;
	struct frames_one *list = realloc(frames->list, room * sizeof(list[0]));
	uint32_t *slots = calloc(room * 2, sizeof(slots[0]));

	if (list)
		frames->list = list;
	if (!list || !slots) {
		free(slots);
		return false;
	}
	free(frames->slots);
	frames->slots = slots;
	frames->slot_count = room * 2;
	frames->room = room;
	for (size_t i = 0; i < frames->count; i++)
		*frames_slot_of(frames, &frames->list[i]) = (uint32_t)i + 1;
	return true;
}

static bool frames_copy(const struct frames_one *one, struct frames_one *out)
{
	char *text = malloc((size_t)one->name_bytes + one->source_bytes + one->file_bytes + 3);
	char *source = text + one->name_bytes + 1, *file = source + one->source_bytes + 1;

	if (!text)
		return false;
	*out = *one;
	out->name = memcpy(text, one->name, one->name_bytes);
	out->source = memcpy(source, one->source, one->source_bytes);
	out->file = memcpy(file, one->file, one->file_bytes);
	text[one->name_bytes] = source[one->source_bytes] = file[one->file_bytes] = '\0';
	return true;
}

uint32_t frames_number(struct frames *frames, const struct frames_one *one)
{
	uint32_t *slot;

	if (frames->count == frames->room && !frames_grow(frames))
		return FRAMES_NONE;
	slot = frames_slot_of(frames, one);
	if (*slot)
		return *slot - 1;
	if (!frames_copy(one, &frames->list[frames->count]))
		return FRAMES_NONE;
	*slot = (uint32_t)++frames->count;
	return *slot - 1;
}

void frames_fini(struct frames *frames)
{
	for (size_t i = 0; i < frames->count; i++)
		free((char *)frames->list[i].name);
	free(frames->list);
	free(frames->slots);
	*frames = (struct frames){ 0 };
}
