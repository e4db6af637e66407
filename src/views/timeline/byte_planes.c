#include "views/timeline/byte_planes.h"

unsigned byte_planes_width(uint64_t value)
{
	unsigned bytes = 0;

	for (; value; value >>= 8)
		bytes++;
	return bytes;
}

void byte_planes_add(struct buf *out, const uint64_t *values, size_t count, unsigned bytes)
{
	size_t at = out->used;

	buf_fill(out, 0, count * bytes);
	if (out->failed)
		return;
	for (unsigned plane = 0; plane < bytes; plane++)
		for (size_t i = 0; i < count; i++)
			out->data[at++] = (char)(values[i] >> (8 * plane));
}
