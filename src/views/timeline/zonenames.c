#include "views/timeline/zonenames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/query/json.h"

static uint64_t zonenames_mix(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t word;

	for (; count >= 8; at += 8, count -= 8) {
		memcpy(&word, at, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	for (; count; at++, count--)
		hash = (hash ^ *at) * 0x100000001b3u;
	return hash;
}

static uint64_t zonenames_hash_of(const struct zonenames_key *key)
{
	uint64_t hash = zonenames_mix((uint32_t)key->line, key->name, key->name_bytes);

	hash = zonenames_mix(hash, key->file, key->file_bytes);
	hash = zonenames_mix(hash, key->source, strlen(key->source));
	return hash ^ hash >> 29;
}

static bool is_name(const struct zonenames *names, const struct zonenames_name *name,
		    const struct zonenames_key *key, uint64_t hash)
{
	const char *text = buf_get(&names->text);

	return name->hash == hash && name->name_bytes == key->name_bytes &&
	       name->file_bytes == key->file_bytes && name->line == key->line &&
	       !memcmp(text + name->name_at, key->name, key->name_bytes) &&
	       !memcmp(text + name->file_at, key->file, key->file_bytes) &&
	       !strncmp(name->source, key->source, sizeof(name->source) - 1);
}

static int grow_slots(struct zonenames *names)
{
	size_t more = names->slot_count ? names->slot_count * 4 : 4096;
	uint32_t *slots = calloc(more, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < names->count; i++) {
		size_t at = names->list[i].hash & (more - 1);

		while (slots[at])
			at = (at + 1) & (more - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(names->slots);
	names->slots = slots;
	names->slot_count = more;
	return 0;
}

static int64_t zonenames_add(struct zonenames *names, const struct zonenames_key *key,
			     uint64_t hash, size_t slot)
{
	struct zonenames_name *name;

	if (!grow((void **)&names->list, &names->room, names->count, sizeof(*name)))
		return -ENOMEM;
	name = &names->list[names->count];
	*name = (struct zonenames_name){ .name_at = names->text.used,
					 .name_bytes = (uint32_t)key->name_bytes,
					 .file_at = names->text.used + key->name_bytes,
					 .file_bytes = (uint32_t)key->file_bytes,
					 .line = key->line,
					 .hash = hash };
	buf_add(&names->text, key->name, key->name_bytes);
	buf_add(&names->text, key->file, key->file_bytes);
	strncpy(name->source, key->source, sizeof(name->source) - 1);
	if (names->text.failed)
		return -ENOMEM;
	names->slots[slot] = (uint32_t)names->count + 1;
	return (int64_t)names->count++;
}

/* The index of a name that is there, or -1 and the slot that it would take. */
static int64_t look_for(const struct zonenames *names, const struct zonenames_key *key,
			uint64_t hash, size_t *out_slot)
{
	size_t slot = hash & (names->slot_count - 1);

	for (; names->slots[slot]; slot = (slot + 1) & (names->slot_count - 1))
		if (is_name(names, &names->list[names->slots[slot] - 1], key, hash))
			return names->slots[slot] - 1;
	*out_slot = slot;
	return -1;
}

int64_t zonenames_find(struct zonenames *names, const struct zonenames_key *key, size_t most)
{
	static const struct zonenames_key others = {
		.name = "(further names)", .name_bytes = 15, .file = "", .source = ""
	};
	uint64_t hash = zonenames_hash_of(key);
	size_t slot = 0;
	int64_t found;

	if (2 * names->count >= names->slot_count && grow_slots(names))
		return -ENOMEM;
	found = look_for(names, key, hash, &slot);
	if (found < 0 && names->count >= most - 1) {
		key = &others;
		hash = zonenames_hash_of(key);
		found = look_for(names, key, hash, &slot);
	}
	return found >= 0 ? found : zonenames_add(names, key, hash, slot);
}

enum column { NAME, SOURCE, FILE_NAME, LINE, COLUMNS };

static void zonenames_add_cell(const struct zonenames *names, const struct zonenames_name *name,
			       enum column column, struct buf *out)
{
	const char *text = buf_get(&names->text);

	if (column == NAME)
		json_text(out, text + name->name_at, name->name_bytes);
	else if (column == FILE_NAME)
		json_text(out, text + name->file_at, name->file_bytes);
	else if (column == SOURCE)
		buf_print(out, "\"%s\"", name->source);
	else
		buf_print(out, "%d", name->line);
}

void zonenames_json(const struct zonenames *names, const uint32_t *which, size_t from, size_t count,
		    struct buf *out)
{
	static const char *const heads[COLUMNS] = { "\"name\":[", "],\"source\":[", "],\"file\":[",
						    "],\"line\":[" };

	for (enum column column = NAME; column < COLUMNS; column++) {
		buf_text(out, heads[column]);
		for (size_t i = 0; i < count; i++) {
			buf_text(out, i ? "," : "");
			zonenames_add_cell(names, &names->list[which ? which[i] : from + i], column,
					   out);
		}
	}
	buf_char(out, ']');
}

void zonenames_fini(struct zonenames *names)
{
	free(names->list);
	free(names->slots);
	buf_fini(&names->text);
	*names = (struct zonenames){ 0 };
}
