/* Fields of a protocol buffer, one after another. Nothing is read beyond `end`. */
#ifndef KYMO_IMPORT_PROTOBUF_READ_H
#define KYMO_IMPORT_PROTOBUF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf_field {
	uint32_t number;
	uint32_t wire; /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
	uint64_t value; /* of 0, 1 and 5; the length of 2 */
	const unsigned char *at; /* of 2 */
};

struct protobuf_reader {
	const unsigned char *at, *end;
	bool bad; /* it is not well-formed */
};

static inline bool protobuf_read_varint(struct protobuf_reader *reader, uint64_t *out)
{
	*out = 0;
	for (int shift = 0; shift < 70; shift += 7) {
		if (reader->at == reader->end)
			return false;
		if (shift < 64)
			*out |= (uint64_t)(*reader->at & 0x7f) << shift;
		if (!(*reader->at++ & 0x80))
			return true;
	}
	return false;
}

static inline bool protobuf_read_fixed(struct protobuf_reader *reader, size_t bytes, uint64_t *out)
{
	if ((size_t)(reader->end - reader->at) < bytes)
		return false;
	*out = 0;
	for (size_t i = 0; i < bytes; i++)
		*out |= (uint64_t)reader->at[i] << (8 * i);
	reader->at += bytes;
	return true;
}

static inline bool protobuf_read_value(struct protobuf_reader *reader, struct protobuf_field *out)
{
	switch (out->wire) {
	case 0: return protobuf_read_varint(reader, &out->value);
	case 1: return protobuf_read_fixed(reader, 8, &out->value);
	case 2:
		if (!protobuf_read_varint(reader, &out->value) ||
		    out->value > (uint64_t)(reader->end - reader->at))
			return false;
		out->at = reader->at;
		reader->at += out->value;
		return true;
	case 5: return protobuf_read_fixed(reader, 4, &out->value);
	default: return false; /* groups are long gone */
	}
}

/* The next field; false: the end, or reader->bad. */
static inline bool protobuf_read_next(struct protobuf_reader *reader, struct protobuf_field *out)
{
	uint64_t tag;

	if (reader->at == reader->end)
		return false;
	reader->bad = !protobuf_read_varint(reader, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff;
	if (reader->bad)
		return false;
	out->number = (uint32_t)(tag >> 3);
	out->wire = tag & 7;
	reader->bad = !protobuf_read_value(reader, out);
	return !reader->bad;
}

static inline struct protobuf_reader protobuf_read_message(const struct protobuf_field *field)
{
	if (field->wire != 2)
		return (struct protobuf_reader){ 0 };
	return (struct protobuf_reader){ field->at, field->at + field->value, false };
}

/* The next number of a field that may be repeated: one (wire 0), or packed ones. *inner is { 0 } at
   first. False: there is none left. */
static inline bool protobuf_read_number(const struct protobuf_field *field,
					struct protobuf_reader *inner, uint64_t *out)
{
	if (field->wire == 0 && !inner->at) {
		inner->at = inner->end = (const unsigned char *)field; /* taken */
		*out = field->value;
		return true;
	}
	if (field->wire != 2)
		return false;
	if (!inner->at)
		*inner = protobuf_read_message(field);
	return inner->at != inner->end && protobuf_read_varint(inner, out);
}

#endif
