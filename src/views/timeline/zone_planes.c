#include "views/timeline/zone_planes.h"

enum column { GAP, DURATION, NAME, COUNT, BUSY };

/* Bytes that the value takes; 0 for 0. */
static unsigned zone_planes_width(uint64_t value)
{
	unsigned bytes = 0;

	for (; value; value >>= 8)
		bytes++;
	return bytes;
}

static void zone_planes_write(struct buf *out, const uint64_t *values, size_t count, unsigned bytes)
{
	size_t at = out->used;

	buf_fill(out, 0, count * bytes);
	if (out->failed)
		return;
	for (unsigned plane = 0; plane < bytes; plane++)
		for (size_t i = 0; i < count; i++)
			out->data[at++] = (char)(values[i] >> (8 * plane));
}

struct columns {
	const struct zone_piece *list;
	size_t count;
	uint64_t base, quantum;
	uint64_t *values;
};

/* Starts and ends are rounded, not lengths, so that errors do not add up. */
static void zone_planes_gaps(const struct columns *columns)
{
	uint64_t end = columns->base;

	for (size_t i = 0; i < columns->count; i++) {
		uint64_t start = (uint64_t)columns->list[i].start_ns / columns->quantum;

		columns->values[i] = start > end ? start - end : 0;
		end = (uint64_t)columns->list[i].end_ns / columns->quantum;
	}
}

static uint64_t zone_planes_value(const struct columns *columns, const struct zone_piece *piece,
				  enum column column)
{
	switch (column) {
	case DURATION:
		return (uint64_t)piece->end_ns / columns->quantum -
		       (uint64_t)piece->start_ns / columns->quantum;
	case NAME: return piece->name;
	case COUNT: return piece->n;
	default: return (uint64_t)piece->busy_ns / columns->quantum;
	}
}

/* Writes a column; `bytes` wide, or as wide as its largest number for -1. Returns the width. */
static unsigned zone_planes_column(struct buf *out, const struct columns *columns,
				   enum column column, int bytes)
{
	uint64_t all = 0;

	if (column == GAP)
		zone_planes_gaps(columns);
	for (size_t i = 0; i < columns->count; i++) {
		if (column != GAP)
			columns->values[i] = zone_planes_value(columns, &columns->list[i], column);
		all |= columns->values[i];
	}
	if (bytes < 0)
		bytes = (int)zone_planes_width(all);
	zone_planes_write(out, columns->values, columns->count, (unsigned)bytes);
	return (unsigned)bytes;
}

void zone_planes_add(struct buf *out, const struct zone_pieces *pieces, int64_t base_ns,
		     uint64_t quantum_ns, uint64_t *values, struct zone_planes *about)
{
	const struct columns columns = { .list = pieces->list,
					 .count = pieces->count,
					 .base = (uint64_t)base_ns / quantum_ns,
					 .quantum = quantum_ns,
					 .values = values };

	about->count = pieces->count;
	about->gap_bytes = zone_planes_column(out, &columns, GAP, -1);
	about->duration_bytes = zone_planes_column(out, &columns, DURATION, -1);
	about->name_bytes = zone_planes_column(out, &columns, NAME, -1);
	if (!about->merged)
		return;
	zone_planes_column(out, &columns, COUNT, 4);
	zone_planes_column(out, &columns, BUSY, (int)about->duration_bytes);
}
