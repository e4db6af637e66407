#include "views/stacks/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/query/json.h"

static uint64_t name_table_hash(const struct name_entry *name)
{
	uint64_t hash = intern_hash((uint32_t)name->line, name->name, name->name_bytes);

	hash = intern_hash(hash, name->source, name->source_bytes);
	return intern_hash(hash, name->file, name->file_bytes);
}

static bool name_table_same(const void *owner, uint32_t number, const void *key)
{
	const struct name_table *table = owner;
	const struct name_entry *a = &table->list[number], *b = key;

	return a->line == b->line && a->name_bytes == b->name_bytes &&
	       a->source_bytes == b->source_bytes && a->file_bytes == b->file_bytes &&
	       !memcmp(a->name, b->name, a->name_bytes) &&
	       !memcmp(a->source, b->source, a->source_bytes) &&
	       !memcmp(a->file, b->file, a->file_bytes);
}

/* All three texts are in one block, which begins with the name. */
static bool name_table_copy(const struct name_entry *name, struct name_entry *out)
{
	char *text = malloc((size_t)name->name_bytes + name->source_bytes + name->file_bytes + 3);
	char *source, *file;

	if (!text)
		return false;
	source = text + name->name_bytes + 1;
	file = source + name->source_bytes + 1;
	*out = *name;
	out->name = memcpy(text, name->name, name->name_bytes);
	out->source = memcpy(source, name->source, name->source_bytes);
	out->file = memcpy(file, name->file, name->file_bytes);
	text[name->name_bytes] = source[name->source_bytes] = file[name->file_bytes] = '\0';
	return true;
}

static uint32_t name_table_append(struct name_table *table, const struct name_entry *name,
				  uint64_t hash)
{
	uint32_t number;

	if (!grow((void **)&table->list, &table->room, table->count, sizeof(*name)) ||
	    !name_table_copy(name, &table->list[table->count]))
		return NAME_TABLE_NONE;
	number = intern_add(&table->index, hash);
	if (number == INTERN_NONE)
		free((char *)table->list[table->count].name);
	else
		table->count++;
	return number;
}

uint32_t name_table_add(struct name_table *table, const struct name_entry *name)
{
	static const struct name_entry further = {
		.name = "(further names)", .name_bytes = 15, .source = "", .file = ""
	};
	uint64_t hash = name_table_hash(name);
	uint32_t found = intern_find(&table->index, hash, name_table_same, table, name);

	if (found == INTERN_NONE && table->most && table->count >= table->most - 1) {
		name = &further;
		hash = name_table_hash(name);
		found = intern_find(&table->index, hash, name_table_same, table, name);
	}
	return found != INTERN_NONE ? found : name_table_append(table, name, hash);
}

static void name_table_cell(const struct name_entry *name, int column, struct buf *out)
{
	switch (column) {
	case 0: json_text(out, name->name, name->name_bytes); break;
	case 1: json_text(out, name->source, name->source_bytes); break;
	case 2: json_text(out, name->file, name->file_bytes); break;
	default: buf_print(out, "%d", name->line);
	}
}

void name_table_json(const struct name_table *table, const uint32_t *which, size_t from,
		     size_t count, struct buf *out)
{
	static const char *const heads[] = { "\"name\":[", "],\"source\":[", "],\"file\":[",
					     "],\"line\":[" };

	for (int column = 0; column < 4; column++) {
		buf_text(out, heads[column]);
		for (size_t i = 0; i < count; i++) {
			buf_text(out, i ? "," : "");
			name_table_cell(&table->list[which ? which[i] : from + i], column, out);
		}
	}
	buf_char(out, ']');
}

void name_table_fini(struct name_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free((char *)table->list[i].name);
	free(table->list);
	intern_fini(&table->index);
	*table = (struct name_table){ 0 };
}
