/*
 * libkymo_nvtx.so: records programs that are marked with NVIDIA's NVTX API. Their libraries contain
 * a part of headers alone, which loads the library of NVTX_INJECTION64_PATH at the first call and
 * passes it a table of function pointers to fill. Each library of a program has such a part, and
 * initialises it on its own.
 *
 *	nvtx_api.c       the entries, the tables
 *	nvtx_names.c     domains, categories, registered strings, and the ids of names
 *	nvtx_text.c      bounded texts; wide characters
 *	nvtx_ranges.c    ranges, marks, waits for synchronisation objects
 *	nvtx_values.c    counters, threads, names of resources
 *	nvtx_schemas.c   schemas and enumerations of payloads
 *	nvtx_decode.c    payloads as texts
 *
 * The structs are those of the ABI, versions 1 to 3, as far as they are used.
 */
#ifndef KYMO_NVTX_H
#define KYMO_NVTX_H

#include <wchar.h>

#include <kymo/kymo.h>

/* What a program without a tool gets from push and pop: levels are not counted. */
#define NVTX_NO_LEVEL (-2)

/* ---- the ABI --------------------------------------------------------------------------------- */

enum nvtx_message_type { NVTX_NONE, NVTX_ASCII, NVTX_WIDE, NVTX_REGISTERED };

enum nvtx_payload_type {
	NVTX_U64 = 1,
	NVTX_I64,
	NVTX_DOUBLE,
	NVTX_U32,
	NVTX_I32,
	NVTX_FLOAT,
	NVTX_EXTENDED = (int)0xdfbd0009, /* a list of struct nvtx_payload */
};

union nvtx_message {
	const char *ascii;
	const wchar_t *wide;
	struct nvtx_string *registered;
};

struct nvtx_attributes {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t colour_type;
	uint32_t colour;
	int32_t payload_type;
	int32_t payload_count; /* of NVTX_EXTENDED */
	union {
		uint64_t u64;
		int64_t i64;
		double d;
		uint32_t u32;
		int32_t i32;
		float f;
	} payload;
	int32_t message_type;
	union nvtx_message message;
};

struct nvtx_payload {
	uint64_t schema; /* an entry type, or the id of a schema or enumeration */
	size_t bytes;
	const void *data;
};

/* ---- texts ----------------------------------------------------------------------------------- */

#define NVTX_TEXT_BYTES 2048u

/* A text that is cut at its limit; always ends with NUL. */
struct nvtx_text {
	size_t bytes;
	char text[NVTX_TEXT_BYTES];
};

static inline void nvtx_text_init(struct nvtx_text *text)
{
	text->bytes = 0;
	text->text[0] = '\0';
}

void nvtx_text_add(struct nvtx_text *out, const char *text, size_t bytes);
void nvtx_text_print(struct nvtx_text *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Code units of 1, 2 or 4 bytes (UTF-8, UTF-16, UTF-32), up to the first 0. */
void nvtx_text_add_units(struct nvtx_text *out, const void *units, size_t count, size_t width);
static inline void nvtx_text_wide(struct nvtx_text *out, const wchar_t *wide)
{
	nvtx_text_init(out);
	if (wide)
		nvtx_text_add_units(out, wide, NVTX_TEXT_BYTES, sizeof(*wide));
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Domains, strings and categories are never freed: programs keep their handles. */
struct nvtx_domain {
	const char *name;
	uint32_t number; /* for flags of open zones; 0 is that of waits */
	uint32_t epoch; /* incremented by each name of a category; atomic */
	uint32_t names; /* atomic */
	uint32_t strings; /* atomic */
	uint32_t other; /* the id of names beyond all limits; atomic */
	struct nvtx_category *categories; /* atomic */
	struct nvtx_domain *next;
};

struct nvtx_string {
	struct nvtx_domain *domain;
	uint64_t cached; /* of the category of its last event: category << 32 | id; atomic */
	uint32_t epoch; /* of the domain when `cached` was looked up; atomic */
	uint32_t hash;
	uint32_t magic; /* of a handle that a payload contains */
	uint32_t bytes;
	struct nvtx_string *next;
	char text[];
};
#define NVTX_STRING_MAGIC 0x4b4e5658u

extern struct nvtx_domain nvtx_default_domain;

static inline struct nvtx_domain *nvtx_domain_of(struct nvtx_domain *domain)
{
	return domain ? domain : &nvtx_default_domain;
}

struct nvtx_domain *nvtx_domain_create(const char *name);
struct nvtx_string *nvtx_string_register(struct nvtx_domain *domain, const char *text);
void nvtx_category_name(struct nvtx_domain *domain, uint32_t category, const char *name);
/* "DOMAIN", "CATEGORY" or "DOMAIN/CATEGORY": the column file. */
void nvtx_place(struct nvtx_text *out, const struct nvtx_domain *domain, uint32_t category);

/* A name for an event. A domain has 4,096 names; of later ones digits become '#', and of another
   4,096 later all are one. The whole text then belongs to the event (`whole`, else NULL). */
struct nvtx_name {
	uint32_t id; /* 0: not recorded */
	const char *whole;
};
struct nvtx_name nvtx_name_of(struct nvtx_domain *domain, uint32_t category, const char *text);
struct nvtx_name nvtx_name_of_string(struct nvtx_string *string, uint32_t category);
/* 0: look it up. */
static inline uint32_t nvtx_cached_id(const struct nvtx_string *string, uint32_t category)
{
	const uint64_t cached = kymo__load_relaxed(&string->cached);

	if (KYMO__LIKELY(cached >> 32 == category &&
			 kymo__load_relaxed(&string->epoch) ==
				 kymo__load_relaxed(&string->domain->epoch)))
		return (uint32_t)cached;
	return 0;
}
/* Of a mark or counter, which have names without a domain: the text of the name. */
const char *nvtx_name_text(struct nvtx_domain *domain, const char *text, struct nvtx_text *folded);

/* ---- payloads -------------------------------------------------------------------------------- */

/* What the payloads of an event say beside its values. */
struct nvtx_decoded {
	struct nvtx_text values; /* "NAME=VALUE NAME=VALUE" */
	struct nvtx_text message; /* "": none */
	uint32_t category; /* 0: none */
};

void nvtx_decode(struct nvtx_decoded *out, struct nvtx_domain *domain,
		 const struct nvtx_payload *payloads, size_t count);
/* Calls take(name, value) for each number of a counter's sample. */
void nvtx_decode_numbers(struct nvtx_domain *domain, const struct nvtx_payload *sample,
			 void (*take)(void *context, const char *name, double value),
			 void *context);

/* ---- tables of functions --------------------------------------------------------------------- */

struct nvtx_function {
	uint32_t index;
	void *function;
};

/* By module of the ABI; each ends with a function NULL. */
extern const struct nvtx_function nvtx_core[], nvtx_core2[], nvtx_sync[], nvtx_core_names[],
	nvtx_core2_names[], nvtx_cuda[], nvtx_cudart[], nvtx_opencl[];
/* Of the extensions for payloads and counters. */
extern const struct nvtx_function nvtx_payload_ranges[], nvtx_payload_schemas[], nvtx_counters[];

#endif
