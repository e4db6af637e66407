/* Reads numbers of DWARF from untrusted bytes; after the end all are 0 and `failed` is set. */
#ifndef KYMO_COLLECT_FRAMES_DWARF_BYTES_H
#define KYMO_COLLECT_FRAMES_DWARF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dwarf_bytes {
	const unsigned char *at, *end;
	bool failed;
};

static inline size_t dwarf_left(const struct dwarf_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

static inline const unsigned char *dwarf_skip(struct dwarf_bytes *bytes, uint64_t count)
{
	const unsigned char *at = bytes->at;

	if (bytes->failed || count > dwarf_left(bytes)) {
		bytes->failed = true;
		bytes->at = bytes->end;
		return NULL;
	}
	bytes->at += count;
	return at;
}

/* A little-endian number of 1, 2, 4 or 8 bytes. */
static inline uint64_t dwarf_fixed(struct dwarf_bytes *bytes, size_t width)
{
	const unsigned char *at = dwarf_skip(bytes, width);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, width);
	return value;
}

static inline int64_t dwarf_signed(struct dwarf_bytes *bytes, size_t width)
{
	uint64_t value = dwarf_fixed(bytes, width);
	unsigned unused = 64 - 8 * (unsigned)width;

	return (int64_t)(value << unused) >> unused;
}

static inline uint64_t dwarf_uleb(struct dwarf_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint64_t byte = dwarf_fixed(bytes, 1);

		if (shift < 64)
			value |= (byte & 127) << shift;
		if (!(byte & 128) || bytes->failed)
			return value;
	}
}

static inline int64_t dwarf_sleb(struct dwarf_bytes *bytes)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = dwarf_fixed(bytes, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128 && !bytes->failed);
	if (shift < 64 && byte & 64)
		value |= ~0ull << shift;
	return (int64_t)value;
}

#endif
