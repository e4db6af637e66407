#include "views/export/protobuf.h"

#include <string.h>

#include "views/term/text.h"

enum { VARINT = 0, EIGHT_BYTES = 1, COUNTED = 2 };

void protobuf_varint(struct buf *out, uint64_t value)
{
	char bytes[10];
	size_t count = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[count++] = (char)(value | 0x80);
	bytes[count++] = (char)value;
	buf_add(out, bytes, count);
}

static void key(struct buf *out, uint32_t field, unsigned int type)
{
	protobuf_varint(out, (uint64_t)field << 3 | type);
}

void protobuf_number(struct buf *out, uint32_t field, uint64_t value)
{
	key(out, field, VARINT);
	protobuf_varint(out, value);
}

void protobuf_fixed64(struct buf *out, uint32_t field, uint64_t value)
{
	char bytes[8];

	for (size_t i = 0; i < 8; i++)
		bytes[i] = (char)(value >> (8 * i));
	key(out, field, EIGHT_BYTES);
	buf_add(out, bytes, sizeof(bytes));
}

void protobuf_double(struct buf *out, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	protobuf_fixed64(out, field, bits);
}

void protobuf_bytes(struct buf *out, uint32_t field, const void *bytes, size_t count)
{
	key(out, field, COUNTED);
	protobuf_varint(out, count);
	buf_add(out, bytes, count);
}

void protobuf_text(struct buf *out, uint32_t field, const char *text, size_t bytes)
{
	struct buf clean = { 0 };
	size_t one;

	for (size_t at = 0; at < bytes; at += one ? one : 1) {
		one = text_character(text + at, bytes - at, NULL);
		if (!one)
			buf_text(&clean, "\xef\xbf\xbd");
		else if (!text[at])
			buf_text(&clean, "\xe2\x90\x80");
		else
			buf_add(&clean, text + at, one);
	}
	protobuf_bytes(out, field, clean.data ? clean.data : "", clean.used);
	out->failed |= clean.failed;
	buf_fini(&clean);
}

void protobuf_message(struct buf *out, uint32_t field, struct buf *message)
{
	protobuf_bytes(out, field, message->data ? message->data : "", message->used);
	out->failed |= message->failed;
	buf_reset(message);
}
