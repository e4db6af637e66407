#include "nvtx_schemas.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMAS_MOST 16384u
#define DYNAMIC_IDS (1ull << 32)
#define VALUE_BYTES_MOST (1u << 24)

static struct nvtx_schema *schemas; /* as the lists of nvtx_names.c */
static uint32_t schema_count;

const struct nvtx_schema *nvtx_schema_find(const struct nvtx_domain *domain, uint64_t id)
{
	const struct nvtx_schema *schema = kymo__load_acquire(&schemas);

	while (schema && (schema->id != id || schema->domain != domain))
		schema = schema->next;
	return schema;
}

/* ---- types of the ABI ---- */

#define TYPES 81u

static const uint8_t type_bytes[TYPES] = {
	[1] = 1,
	[2] = 1,
	[3] = 2,
	[4] = 2,
	[5] = 4,
	[6] = 4,
	[7] = sizeof(long),
	[8] = sizeof(long),
	[9] = 8,
	[10] = 8,
	[11] = 1,
	[12] = 1,
	[13] = 2,
	[14] = 2,
	[15] = 4,
	[16] = 4,
	[17] = 8,
	[18] = 8,
	[19] = 4,
	[20] = 8,
	[21] = sizeof(long double),
	[22] = sizeof(size_t),
	[23] = sizeof(void *),
	[24] = sizeof(wchar_t),
	[25] = 1,
	[26] = 2,
	[27] = 4,
	[32] = 1,
	[33] = 16,
	[34] = 16,
	[42] = 2,
	[43] = 4,
	[44] = 8,
	[45] = 16,
	[50] = 2,
	[52] = 4,
	[67] = 8,
	[68] = 4,
	[69] = 4,
	[70] = 8,
	[71] = 4,
	[72] = 8,
	[73] = 4,
	[74] = 8,
	[75] = 1,
	[76] = 1,
	[77] = 2,
	[78] = 4,
	[80] = sizeof(void *),
};

struct nvtx_layout nvtx_layout_of(const struct nvtx_domain *domain, uint64_t type)
{
	struct nvtx_layout layout = { 0, 1 };
	const struct nvtx_schema *schema;

	if (type < NVTX_FIRST_ID) {
		if (type < TYPES && type_bytes[type])
			layout.bytes = layout.align = type_bytes[type];
		return layout;
	}
	schema = nvtx_schema_find(domain, type);
	if (schema) {
		layout.bytes = schema->bytes;
		layout.align = schema->align;
	}
	return layout;
}

bool nvtx_is_text(uint64_t type)
{
	return type >= 75 && type <= 78;
}

bool nvtx_is_inline_text(const struct nvtx_entry *entry)
{
	return !(entry->flags & NVTX_ENTRY_POINTER) &&
	       (entry->detail || (entry->flags & NVTX_ENTRY_ARRAY));
}

/* ---- registration ---- */

/* The structs of the ABI. */
struct raw_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};

struct raw_schema {
	uint64_t fields; /* those that are set */
	const char *name;
	uint64_t kind, flags;
	const struct raw_entry *entries;
	size_t count;
	size_t static_bytes;
	size_t pack;
	uint64_t id;
	void *extension;
};

enum { HAS_NAME = 1 << 1, HAS_SCHEMA = 1 << 2 | 1 << 4 | 1 << 5, HAS_BYTES = 1 << 6 };
enum { HAS_PACK = 1 << 7, HAS_ID = 1 << 8 };

struct raw_enum_value {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

struct raw_enum {
	uint64_t fields;
	const char *name;
	const struct raw_enum_value *values;
	size_t count;
	size_t bytes;
	uint64_t id;
	void *extension;
};

enum { HAS_ENUM = 1 << 2 | 1 << 3 | 1 << 4, HAS_ENUM_ID = 1 << 5 };

static const char *keep_text(const char *text)
{
	const char *own = text && *text ? strndup(text, 200) : NULL;

	return own ? own : "";
}

/* The names of entries stay: a schema that could not be added is rare, and small. */
static struct nvtx_schema *schema_new(struct nvtx_domain *domain, uint64_t id, const char *name)
{
	uint32_t number = kymo__add_fetch_relaxed(&schema_count, 1);
	struct nvtx_schema *schema = number <= SCHEMAS_MOST ? calloc(1, sizeof(*schema)) : NULL;

	if (!schema)
		return NULL;
	schema->domain = nvtx_domain_of(domain);
	schema->id = id ? id : DYNAMIC_IDS + number;
	schema->name = keep_text(name);
	return schema;
}

static uint64_t schema_publish(struct nvtx_schema *schema)
{
	schema->next = kymo__load_relaxed(&schemas);
	while (!kymo__cas_weak_release(&schemas, &schema->next, schema))
		;
	return schema->id;
}

/* A length of 0 counts as one value: the shortest that such an entry can have. */
static struct nvtx_layout entry_layout(const struct nvtx_schema *schema,
				       const struct nvtx_entry *entry)
{
	struct nvtx_layout layout = nvtx_layout_of(schema->domain, entry->type);
	const uint64_t array = (entry->flags & NVTX_ENTRY_ARRAY) >> 4;

	if (entry->flags & NVTX_ENTRY_POINTER ||
	    (nvtx_is_text(entry->type) && !nvtx_is_inline_text(entry)))
		return (struct nvtx_layout){ sizeof(void *), sizeof(void *) };
	if ((array == NVTX_ARRAY_FIXED || nvtx_is_text(entry->type)) && entry->detail &&
	    entry->detail < VALUE_BYTES_MOST)
		layout.bytes *= entry->detail;
	return layout;
}

static size_t nvtx_schemas_round_up(size_t value, size_t align)
{
	return align > 1 ? (value + align - 1) / align * align : value;
}

/* Offsets of entries that have none, by the rules of C; and the size and alignment of the whole.
   Of a dynamic schema the sizes of entries are known with a value only (nvtx_decode.c). */
static void schema_lay_out(struct nvtx_schema *schema)
{
	const bool is_union = schema->kind == NVTX_UNION || schema->kind == NVTX_UNION_SELF;
	size_t cursor = 0, end = 0;

	schema->align = 1;
	for (size_t i = 0; i < schema->count; i++) {
		struct nvtx_entry *entry = &schema->entries[i];
		struct nvtx_layout layout = entry_layout(schema, entry);

		if (schema->pack && layout.align > schema->pack)
			layout.align = schema->pack;
		if (layout.align > schema->align)
			schema->align = layout.align;
		if (!entry->offset && i && !is_union && schema->kind == NVTX_STATIC)
			entry->offset = nvtx_schemas_round_up(cursor, layout.align);
		cursor = entry->offset + layout.bytes;
		end = cursor > end ? cursor : end;
	}
	if (!schema->bytes && schema->kind != NVTX_DYNAMIC)
		schema->bytes = nvtx_schemas_round_up(end, schema->align);
}

static bool take_entries(struct nvtx_schema *schema, const struct raw_schema *raw)
{
	schema->count = raw->count < NVTX_ENTRIES_MOST ? raw->count : NVTX_ENTRIES_MOST;
	schema->entries = calloc(schema->count, sizeof(schema->entries[0]));
	if (!schema->entries)
		return false;
	for (size_t i = 0; i < schema->count; i++)
		schema->entries[i] = (struct nvtx_entry){
			.flags = raw->entries[i].flags,
			.type = raw->entries[i].type,
			.detail = raw->entries[i].detail,
			.offset = raw->entries[i].offset < VALUE_BYTES_MOST ? raw->entries[i].offset
									    : VALUE_BYTES_MOST,
			.name = keep_text(raw->entries[i].name),
		};
	return true;
}

static uint64_t schema_register(struct nvtx_domain *domain, const struct raw_schema *raw)
{
	struct nvtx_schema *schema;

	if (!raw || (raw->fields & HAS_SCHEMA) != HAS_SCHEMA || !raw->entries || !raw->count ||
	    raw->kind < NVTX_STATIC || raw->kind > NVTX_UNION_SELF)
		return 0;
	schema = schema_new(domain, raw->fields & HAS_ID ? raw->id : 0,
			    raw->fields & HAS_NAME ? raw->name : NULL);
	if (!schema)
		return 0;
	schema->kind = (enum nvtx_schema_kind)raw->kind;
	schema->pack = raw->fields & HAS_PACK ? raw->pack : 0;
	schema->bytes = raw->fields & HAS_BYTES && raw->kind != NVTX_DYNAMIC ? raw->static_bytes
									     : 0;
	if (!take_entries(schema, raw)) {
		free(schema);
		return 0;
	}
	schema_lay_out(schema);
	return schema_publish(schema);
}

static bool nvtx_schemas_take_values(struct nvtx_schema *schema, const struct raw_enum *raw)
{
	schema->count = raw->count < NVTX_ENTRIES_MOST ? raw->count : NVTX_ENTRIES_MOST;
	schema->values = calloc(schema->count, sizeof(schema->values[0]));
	if (!schema->values)
		return false;
	for (size_t i = 0; i < schema->count; i++)
		schema->values[i] = (struct nvtx_enum_value){ keep_text(raw->values[i].name),
							      raw->values[i].value,
							      raw->values[i].is_flag != 0 };
	return true;
}

static uint64_t enum_register(struct nvtx_domain *domain, const struct raw_enum *raw)
{
	struct nvtx_schema *schema;

	if (!raw || (raw->fields & HAS_ENUM) != HAS_ENUM || !raw->values || !raw->count ||
	    !raw->bytes || raw->bytes > 8)
		return 0;
	schema = schema_new(domain, raw->fields & HAS_ENUM_ID ? raw->id : 0,
			    raw->fields & HAS_NAME ? raw->name : NULL);
	if (!schema)
		return 0;
	schema->kind = NVTX_ENUM;
	schema->bytes = schema->align = raw->bytes;
	if (!nvtx_schemas_take_values(schema, raw)) {
		free(schema);
		return 0;
	}
	return schema_publish(schema);
}

const struct nvtx_function nvtx_payload_schemas[] = {
	{ 0, (void *)schema_register },
	{ 1, (void *)enum_register },
	{ 0, NULL },
};
