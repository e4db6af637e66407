/* Payloads as texts. A payload is memory of the program, with a length; what an entry points to is
   read through the kernel, because a wrong address must not end the program. */
#include "nvtx_schemas.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEEPEST 4u
#define VALUES_MOST 32u /* of an array */
#define POINTED_BYTES 1024u

struct bytes {
	const unsigned char *at;
	size_t count;
};

struct decoder {
	const struct nvtx_domain *domain;
	const struct nvtx_payload *payloads;
	size_t count;
	struct nvtx_decoded *out; /* NULL: numbers only */
	void (*take)(void *context, const char *name, double value);
	void *context;
	uint32_t depth;
};

/* ---- values of the ABI ---- */

enum value_kind { VALUE_NONE, VALUE_SIGNED, VALUE_UNSIGNED, VALUE_REAL, VALUE_ADDRESS };

struct value {
	enum value_kind kind;
	int64_t i;
	uint64_t u;
	double d;
};

static uint64_t read_unsigned(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes < 8 ? bytes : 8); /* little endian */
	return value;
}

static double read_half(uint16_t half)
{
	const int exponent = half >> 10 & 31;
	const double sign = half >> 15 ? -1 : 1, fraction = half & 1023;

	if (exponent == 31)
		return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
	return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double read_real(uint64_t type, const unsigned char *at)
{
	long double longest = 0;
	uint32_t bits;
	double real;
	float single;

	switch (type) {
	case 20:
	case 44: memcpy(&real, at, 8); return real;
	case 21: memcpy(&longest, at, sizeof(longest)); return (double)longest;
	case 42: return read_half((uint16_t)read_unsigned(at, 2));
	case 50: bits = (uint32_t)read_unsigned(at, 2) << 16; break;
	default: bits = (uint32_t)read_unsigned(at, 4);
	}
	memcpy(&single, &bits, 4);
	return (double)single;
}

static enum value_kind nvtx_decode_kind_of(uint64_t type)
{
	switch (type) {
	case 1:
	case 3:
	case 5:
	case 7:
	case 9:
	case 11:
	case 13:
	case 15:
	case 17: return VALUE_SIGNED;
	case 2:
	case 4:
	case 6:
	case 8:
	case 10:
	case 12:
	case 14:
	case 16:
	case 18:
	case 22:
	case 24:
	case 25:
	case 26:
	case 27:
	case 32:
	case 67:
	case 68:
	case 70:
	case 71:
	case 72:
	case 73:
	case 74: return VALUE_UNSIGNED;
	case 19:
	case 20:
	case 21:
	case 42:
	case 43:
	case 44:
	case 50:
	case 52: return VALUE_REAL;
	case 23:
	case 33:
	case 34:
	case 45:
	case 69: return VALUE_ADDRESS;
	default: return VALUE_NONE;
	}
}

static struct value read_value(uint64_t type, const unsigned char *at, size_t bytes)
{
	struct value value = { .kind = nvtx_decode_kind_of(type) };
	const unsigned int unused = bytes < 8 ? 64 - 8 * (unsigned int)bytes : 0;

	if (value.kind == VALUE_REAL) {
		value.d = read_real(type, at);
		return value;
	}
	value.u = read_unsigned(at, bytes);
	value.i = (int64_t)(value.u << unused) >> unused;
	value.d = value.kind == VALUE_SIGNED ? (double)value.i : (double)value.u;
	return value;
}

static void nvtx_decode_print_value(struct nvtx_text *out, const struct value *value)
{
	switch (value->kind) {
	case VALUE_SIGNED: nvtx_text_print(out, "%" PRId64, value->i); break;
	case VALUE_UNSIGNED: nvtx_text_print(out, "%" PRIu64, value->u); break;
	case VALUE_REAL: nvtx_text_print(out, "%.9g", value->d); break;
	case VALUE_ADDRESS: nvtx_text_print(out, "%#" PRIx64, value->u); break;
	default: nvtx_text_add(out, "?", 1);
	}
}

static void print_enum(struct nvtx_text *out, const struct nvtx_schema *schema, uint64_t value)
{
	uint64_t left = value;
	const char *between = "";

	for (size_t i = 0; i < schema->count; i++)
		if (schema->values[i].value == value) {
			nvtx_text_print(out, "%s", schema->values[i].name);
			return;
		}
	for (size_t i = 0; i < schema->count; i++)
		if (schema->values[i].is_flag && schema->values[i].value &&
		    (left & schema->values[i].value) == schema->values[i].value) {
			nvtx_text_print(out, "%s%s", between, schema->values[i].name);
			left &= ~schema->values[i].value;
			between = "|";
		}
	if (left || !*between)
		nvtx_text_print(out, "%s%" PRIu64, between, left);
}

/* ---- memory of the program ---- */

static struct bytes nvtx_decode_part_of(struct bytes bytes, uint64_t offset)
{
	struct bytes part = { bytes.at, 0 };

	if (offset < bytes.count) {
		part.at += offset;
		part.count = bytes.count - offset;
	}
	return part;
}

/* Reads as much as is mapped, in pages. */
static size_t nvtx_decode_read_memory(uint64_t address, void *out, size_t bytes)
{
	struct iovec here = { out, bytes }, there[2];
	size_t first = 4096 - (size_t)(address & 4095);
	ssize_t got;

	first = first < bytes ? first : bytes;
	there[0] = (struct iovec){ (void *)(uintptr_t)address, first };
	there[1] = (struct iovec){ (void *)(uintptr_t)(address + first), bytes - first };
	got = process_vm_readv(getpid(), &here, 1, there, bytes > first ? 2 : 1, 0);
	return got > 0 ? (size_t)got : 0;
}

/* ---- entries ---- */

static void decode_value(struct decoder *decoder, const char *name, uint64_t type,
			 struct bytes bytes, struct nvtx_text *out);

/* "NAME=", after a blank. */
static void begin_entry(struct nvtx_text *out, const char *name)
{
	if (out->bytes && !strchr("{[,", out->text[out->bytes - 1]))
		nvtx_text_add(out, " ", 1);
	if (*name)
		nvtx_text_print(out, "%s=", name);
}

static size_t element_bytes(const struct decoder *decoder, uint64_t type)
{
	return nvtx_layout_of(decoder->domain, type).bytes;
}

static bool nvtx_decode_is_zero(const unsigned char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i])
			return false;
	return true;
}

static size_t terminated_length(struct bytes bytes, size_t width)
{
	size_t count = 0;

	while (width && (count + 1) * width <= bytes.count &&
	       !nvtx_decode_is_zero(bytes.at + count * width, width))
		count++;
	return count;
}

/* Numbers that lengths and selectors refer to. */
struct seen {
	uint64_t numbers[NVTX_ENTRIES_MOST];
	size_t count;
};

static uint64_t payload_number(const struct decoder *decoder, uint64_t index)
{
	const struct nvtx_payload *payload;
	const struct nvtx_schema *schema;
	uint64_t type;
	size_t bytes;

	if (index >= decoder->count || !decoder->payloads[index].data)
		return 0;
	payload = &decoder->payloads[index];
	schema = nvtx_schema_find(decoder->domain, payload->schema);
	type = schema && schema->entries ? schema->entries[0].type : payload->schema;
	bytes = element_bytes(decoder, type);
	return bytes && bytes <= payload->bytes ? read_value(type, payload->data, bytes).u : 0;
}

/* How many values an entry has, of those that are there. */
static uint64_t entry_length(const struct decoder *decoder, const struct nvtx_entry *entry,
			     struct bytes bytes, const struct seen *seen)
{
	const size_t width = element_bytes(decoder, entry->type);

	switch ((enum nvtx_array)((entry->flags & NVTX_ENTRY_ARRAY) >> 4)) {
	case NVTX_ARRAY_FIXED: return entry->detail;
	case NVTX_ARRAY_TERMINATED: return terminated_length(bytes, width);
	case NVTX_ARRAY_BY_ENTRY:
		return entry->detail < seen->count ? seen->numbers[entry->detail] : 0;
	case NVTX_ARRAY_BY_PAYLOAD: return payload_number(decoder, entry->detail);
	default: break;
	}
	if (!nvtx_is_text(entry->type))
		return 1;
	return entry->detail ? entry->detail : terminated_length(bytes, width);
}

static bool is_array(const struct nvtx_entry *entry)
{
	return (entry->flags & NVTX_ENTRY_ARRAY) != 0;
}

static void decode_array(struct decoder *decoder, const struct nvtx_entry *entry,
			 struct bytes bytes, uint64_t length, struct nvtx_text *out)
{
	const size_t width = element_bytes(decoder, entry->type);

	if (is_array(entry) && out)
		nvtx_text_add(out, "[", 1);
	for (uint64_t i = 0; i < length && width; i++) {
		if (i >= VALUES_MOST || width > bytes.count) {
			if (out)
				nvtx_text_add(out, "…", strlen("…"));
			break;
		}
		if (i && out)
			nvtx_text_add(out, ",", 1);
		decode_value(decoder, entry->name, entry->type, (struct bytes){ bytes.at, width },
			     out);
		bytes = nvtx_decode_part_of(bytes, width);
	}
	if (is_array(entry) && out)
		nvtx_text_add(out, "]", 1);
}

static void nvtx_decode_take_text(struct nvtx_text *out, uint64_t type, struct bytes bytes,
				  uint64_t length)
{
	const size_t width = type == 77 ? 2 : type == 78 ? 4 : 1;

	length = length < bytes.count / width ? length : bytes.count / width;
	nvtx_text_add_units(out, bytes.at, length, width);
}

/* Texts may be the message of the event. */
static void nvtx_decode_text(struct decoder *decoder, const struct nvtx_entry *entry,
			     struct bytes bytes, uint64_t length)
{
	struct nvtx_decoded *out = decoder->out;

	if (!out)
		return;
	if ((entry->flags & NVTX_ENTRY_ROLE) == NVTX_ENTRY_MESSAGE) {
		nvtx_text_init(&out->message);
		nvtx_decode_take_text(&out->message, entry->type, bytes, length);
		return;
	}
	begin_entry(&out->values, entry->name);
	nvtx_decode_take_text(&out->values, entry->type, bytes, length);
}

/* The text of a registered string: an address from a payload, so that it is checked first. */
static void decode_string(struct decoder *decoder, const struct nvtx_entry *entry,
			  struct bytes bytes)
{
	const struct nvtx_entry as_text = { .flags = entry->flags,
					    .type = 76,
					    .name = entry->name };
	struct nvtx_string string;
	unsigned char text[POINTED_BYTES];
	uint64_t address = bytes.count >= 8 ? read_unsigned(bytes.at, 8) : 0;
	size_t got = 0;

	if (address &&
	    nvtx_decode_read_memory(address, &string, sizeof(string)) == sizeof(string) &&
	    string.magic == NVTX_STRING_MAGIC)
		got = nvtx_decode_read_memory(address + offsetof(struct nvtx_string, text), text,
					      string.bytes < sizeof(text) ? string.bytes
									  : sizeof(text));
	nvtx_decode_text(decoder, &as_text, (struct bytes){ text, got }, got);
}

static void decode_here(struct decoder *decoder, const struct nvtx_entry *entry, struct bytes bytes,
			const struct seen *seen)
{
	uint64_t length = entry_length(decoder, entry, bytes, seen);
	struct nvtx_text *out = decoder->out ? &decoder->out->values : NULL;

	if (nvtx_is_text(entry->type)) {
		nvtx_decode_text(decoder, entry, bytes, length);
	} else if (entry->type == 80) {
		decode_string(decoder, entry, bytes);
	} else if (entry->type == 68 && decoder->out) {
		decoder->out->category = bytes.count >= 4 ? (uint32_t)read_unsigned(bytes.at, 4)
							  : 0;
	} else {
		if (out)
			begin_entry(out, entry->name);
		decode_array(decoder, entry, bytes, length, out);
	}
}

/* What an entry points to. */
static void decode_pointed(struct decoder *decoder, const struct nvtx_entry *entry,
			   struct bytes bytes, const struct seen *seen)
{
	struct nvtx_entry here = *entry;
	uint64_t address = bytes.count >= 8 ? read_unsigned(bytes.at, 8) : 0;
	unsigned char pointed[POINTED_BYTES];
	size_t got = address ? nvtx_decode_read_memory(address, pointed, sizeof(pointed)) : 0;

	here.flags &= ~(uint64_t)NVTX_ENTRY_POINTER;
	if (got) {
		decode_here(decoder, &here, (struct bytes){ pointed, got }, seen);
	} else if (decoder->out) {
		begin_entry(&decoder->out->values, entry->name);
		nvtx_text_print(&decoder->out->values, "%#" PRIx64, address);
	}
}

/* ---- schemas ---- */

/* The bytes that an entry of a dynamic schema takes. */
static size_t entry_bytes(const struct decoder *decoder, const struct nvtx_entry *entry,
			  struct bytes bytes, const struct seen *seen)
{
	size_t width = element_bytes(decoder, entry->type);
	uint64_t length;

	if (entry->flags & NVTX_ENTRY_POINTER ||
	    (nvtx_is_text(entry->type) && !nvtx_is_inline_text(entry)))
		return sizeof(void *);
	length = entry_length(decoder, entry, bytes, seen);
	if ((entry->flags & NVTX_ENTRY_ARRAY) >> 4 == NVTX_ARRAY_TERMINATED)
		length++;
	return length < bytes.count / (width ? width : 1) ? length * width : bytes.count;
}

static uint64_t entry_offset(const struct decoder *decoder, const struct nvtx_schema *schema,
			     size_t index, uint64_t cursor)
{
	const struct nvtx_entry *entry = &schema->entries[index];
	size_t align = nvtx_layout_of(decoder->domain, entry->type).align;

	if (schema->kind != NVTX_DYNAMIC || entry->offset || !index)
		return entry->offset;
	if (entry->flags & NVTX_ENTRY_POINTER ||
	    (nvtx_is_text(entry->type) && !nvtx_is_inline_text(entry)))
		align = sizeof(void *);
	if (schema->pack && align > schema->pack)
		align = schema->pack;
	return align > 1 ? (cursor + align - 1) / align * align : cursor;
}

static void decode_union(struct decoder *decoder, const struct nvtx_schema *schema,
			 struct bytes bytes, uint64_t selected);

/* A union without a selector of its own: another entry of the schema around it selects. */
static bool is_selected_outside(const struct decoder *decoder, const struct nvtx_entry *entry,
				const struct nvtx_schema **out)
{
	*out = entry->type >= NVTX_FIRST_ID ? nvtx_schema_find(decoder->domain, entry->type) : NULL;
	return *out && (*out)->kind == NVTX_UNION;
}

static void decode_entry(struct decoder *decoder, const struct nvtx_entry *entry,
			 struct bytes bytes, const struct seen *seen)
{
	const struct nvtx_schema *schema;

	if (entry->type == 100 /* a selector */ ||
	    (entry->flags & NVTX_ENTRY_HIDDEN &&
	     (entry->flags & NVTX_ENTRY_ROLE) != NVTX_ENTRY_MESSAGE))
		return;
	if (is_selected_outside(decoder, entry, &schema))
		decode_union(decoder, schema, bytes,
			     entry->detail < seen->count ? seen->numbers[entry->detail] : ~0ull);
	else if (entry->flags & NVTX_ENTRY_OFFSETS)
		return; /* the size of an offset is not given */
	else if (entry->flags & NVTX_ENTRY_POINTER ||
		 (nvtx_is_text(entry->type) && !nvtx_is_inline_text(entry)))
		decode_pointed(decoder, entry, bytes, seen);
	else
		decode_here(decoder, entry, bytes, seen);
}

static void decode_entries(struct decoder *decoder, const struct nvtx_schema *schema,
			   struct bytes bytes)
{
	uint64_t cursor = 0;
	struct seen seen;

	seen.count = 0;
	for (size_t i = 0; i < schema->count; i++) {
		const struct nvtx_entry *entry = &schema->entries[i];
		uint64_t offset = entry_offset(decoder, schema, i, cursor);
		struct bytes here = nvtx_decode_part_of(bytes, offset);
		size_t width = element_bytes(decoder, entry->type);

		if (!here.count)
			break;
		seen.numbers[i] = width && width <= here.count
					  ? read_value(entry->type, here.at, width).u
					  : 0;
		decode_entry(decoder, entry, here, &seen);
		seen.count = i + 1;
		if (schema->kind == NVTX_DYNAMIC)
			cursor = offset + entry_bytes(decoder, entry, here, &seen);
	}
}

static void decode_union(struct decoder *decoder, const struct nvtx_schema *schema,
			 struct bytes bytes, uint64_t selected)
{
	struct seen none;

	none.count = 0;
	if (selected < schema->count)
		decode_entry(decoder, &schema->entries[selected],
			     nvtx_decode_part_of(bytes, schema->entries[selected].offset), &none);
}

/* The selector is the entry with a type of its own; its size is that of an int. */
static uint64_t union_selector(const struct nvtx_schema *schema, struct bytes bytes)
{
	for (size_t i = 0; i < schema->count; i++)
		if (schema->entries[i].type == 100) {
			bytes = nvtx_decode_part_of(bytes, schema->entries[i].offset);
			return bytes.count >= 4 ? read_unsigned(bytes.at, 4) : ~0ull;
		}
	return ~0ull;
}

static void decode_schema(struct decoder *decoder, const struct nvtx_schema *schema,
			  struct bytes bytes)
{
	if (decoder->depth >= DEEPEST)
		return;
	decoder->depth++;
	if (schema->kind == NVTX_UNION_SELF)
		decode_union(decoder, schema, bytes, union_selector(schema, bytes));
	else
		decode_entries(decoder, schema, bytes);
	decoder->depth--;
}

static void decode_number(struct decoder *decoder, const char *name, uint64_t type,
			  struct bytes bytes, struct nvtx_text *out)
{
	size_t width = element_bytes(decoder, type);
	struct value value;

	if (!width || width > bytes.count)
		return;
	value = read_value(type, bytes.at, width);
	if (decoder->take && value.kind && value.kind != VALUE_ADDRESS)
		decoder->take(decoder->context, name, value.d);
	if (out)
		nvtx_decode_print_value(out, &value);
}

static void decode_value(struct decoder *decoder, const char *name, uint64_t type,
			 struct bytes bytes, struct nvtx_text *out)
{
	const struct nvtx_schema *schema = NULL;

	if (type >= NVTX_FIRST_ID)
		schema = nvtx_schema_find(decoder->domain, type);
	if (!schema) {
		decode_number(decoder, name, type, bytes, out);
	} else if (schema->kind != NVTX_ENUM) {
		if (out)
			nvtx_text_add(out, "{", 1);
		decode_schema(decoder, schema, bytes);
		if (out)
			nvtx_text_add(out, "}", 1);
	} else if (out && schema->bytes <= bytes.count) {
		print_enum(out, schema, read_unsigned(bytes.at, schema->bytes));
	}
}

/* ---- payloads ---- */

#define SCHEMA_REFERENCED 1022u
#define SCHEMA_RAW 1023u
#define PAYLOADS_MOST 64u

/* A payload of a type of the ABI: a text, or as many values as fit. */
static void decode_plain(struct decoder *decoder, const struct nvtx_payload *payload,
			 struct bytes bytes)
{
	struct nvtx_entry entry = { .type = payload->schema, .name = "" };
	const size_t width = element_bytes(decoder, payload->schema);
	struct seen none;

	none.count = 0;
	if (!width)
		return;
	entry.detail = bytes.count / width;
	if (nvtx_is_text(entry.type)) {
		nvtx_decode_text(decoder, &entry, bytes, entry.detail);
		return;
	}
	if (entry.detail > 1)
		entry.flags = NVTX_ARRAY_FIXED << 4;
	entry.name = decoder->out ? "payload" : "";
	decode_here(decoder, &entry, bytes, &none);
}

static void decode_payload(struct decoder *decoder, const struct nvtx_payload *payload)
{
	const struct nvtx_schema *schema;
	struct bytes bytes = { payload->data, payload->bytes };

	if (!payload->data || !payload->bytes || payload->schema == SCHEMA_REFERENCED)
		return;
	if (payload->bytes == SIZE_MAX) { /* a text that ends with 0 */
		if (payload->schema != 75 && payload->schema != 76)
			return;
		bytes.count = strnlen(payload->data, NVTX_TEXT_BYTES);
	}
	schema = nvtx_schema_find(decoder->domain, payload->schema);
	if (schema && schema->kind != NVTX_ENUM)
		decode_schema(decoder, schema, bytes);
	else if (!schema && payload->schema < SCHEMA_REFERENCED)
		decode_plain(decoder, payload, bytes);
	else if (decoder->out)
		nvtx_text_print(&decoder->out->values, "%spayload of %zu bytes",
				decoder->out->values.bytes ? " " : "", bytes.count);
}

void nvtx_decode(struct nvtx_decoded *out, struct nvtx_domain *domain,
		 const struct nvtx_payload *payloads, size_t count)
{
	struct decoder decoder = { .domain = domain, .payloads = payloads, .out = out };

	nvtx_text_init(&out->values);
	nvtx_text_init(&out->message);
	out->category = 0;
	if (!payloads)
		return;
	decoder.count = count < PAYLOADS_MOST ? count : PAYLOADS_MOST;
	for (size_t i = 0; i < decoder.count; i++)
		decode_payload(&decoder, &payloads[i]);
}

void nvtx_decode_numbers(struct nvtx_domain *domain, const struct nvtx_payload *sample,
			 void (*take)(void *context, const char *name, double value), void *context)
{
	struct decoder decoder = {
		.domain = domain, .payloads = sample, .count = 1, .take = take, .context = context
	};

	decode_payload(&decoder, sample);
}
