/* Schemas of payloads: what a program has registered, copied and checked. */
#ifndef KYMO_NVTX_SCHEMAS_H
#define KYMO_NVTX_SCHEMAS_H

#include "nvtx.h"

#define NVTX_ENTRIES_MOST 128u

/* Types of entries below this are of the ABI, others ids of schemas and enumerations. */
#define NVTX_FIRST_ID (1ull << 24)

enum nvtx_entry_flags {
	NVTX_ENTRY_POINTER = 1 << 1,
	NVTX_ENTRY_OFFSETS = 3 << 2, /* the value is elsewhere in the payload */
	NVTX_ENTRY_ARRAY = 7 << 4, /* a mask: enum nvtx_array << 4 */
	NVTX_ENTRY_HIDDEN = 1 << 9,
	NVTX_ENTRY_ROLE = 3 << 10, /* a mask */
	NVTX_ENTRY_MESSAGE = 1 << 10,
};

enum nvtx_array {
	NVTX_SCALAR,
	NVTX_ARRAY_FIXED,
	NVTX_ARRAY_TERMINATED,
	NVTX_ARRAY_BY_ENTRY, /* the length is another entry */
	NVTX_ARRAY_BY_PAYLOAD, /* the length is another payload of the event */
};

struct nvtx_entry {
	uint64_t flags, type;
	uint64_t detail; /* a length, or the index of an entry or payload */
	uint64_t offset; /* 0 after the first entry: behind the one before */
	const char *name;
};

enum nvtx_schema_kind {
	NVTX_ENUM, /* of kymo; the others are of the ABI */
	NVTX_STATIC,
	NVTX_DYNAMIC,
	NVTX_UNION,
	NVTX_UNION_SELF, /* one entry is the selector */
};

struct nvtx_enum_value {
	const char *name;
	uint64_t value;
	bool is_flag;
};

struct nvtx_schema {
	const struct nvtx_domain *domain;
	uint64_t id;
	enum nvtx_schema_kind kind;
	size_t bytes; /* of a value; 0: not known */
	size_t align; /* of a value */
	size_t pack; /* greatest alignment of an entry; 0: any */
	const char *name;
	size_t count;
	struct nvtx_entry *entries;
	struct nvtx_enum_value *values;
	struct nvtx_schema *next;
};

/* NULL: not registered in the domain. */
const struct nvtx_schema *nvtx_schema_find(const struct nvtx_domain *domain, uint64_t id);

/* Size and alignment of a value of the type; of a text those of a character. 0: unknown type. */
struct nvtx_layout {
	size_t bytes, align;
};
struct nvtx_layout nvtx_layout_of(const struct nvtx_domain *domain, uint64_t type);

bool nvtx_is_text(uint64_t type);
/* In the entry are characters; false: an address of some, as its flags or a length of 0 say. */
bool nvtx_is_inline_text(const struct nvtx_entry *entry);

#endif
