/* Converts rows of a stream to vectors of DuckDB, with one decoder for each kind of column. */
#ifndef KYMO_TABLES_SCAN_DECODE_H
#define KYMO_TABLES_SCAN_DECODE_H

#include "tables/session.h"

/* Rows of one stream that become one chunk of DuckDB. */
struct decode_block {
	struct tables *tables;
	const struct table_shape *shape;
	const struct table_shape_stream *stream;
	const unsigned char *rows;
	size_t row_bytes;
	size_t count; /* at most DuckDB's vector size */
	/* By declared column; created on first use, so that the six columns of a name share one. */
	duckdb_selection_vector *selections;
};

/* Fills `out` with a column of the block. */
void decode_column(struct decode_block *block, const struct table_shape_column *column,
		   duckdb_vector out);
/* Frees the selections; the filled vectors hold their own references. */
void decode_end(struct decode_block *block);

duckdb_type decode_type(enum table_shape_kind kind);
/* The dictionary of a kind, or -1. */
int decode_dictionary(enum table_shape_kind kind);

/* As store_clock_ns() and store_clock_span_ns(), without a call if nothing can overflow: less
   than 2^58 ticks, less than 16 ns per tick and a base of less than 2^61 ns. */
#define DECODE_TICKS_BITS 58
#define DECODE_MULT_BITS 36
#define DECODE_BASE_BITS 61

/* Nonzero if value is outside +-2^bits. */
static inline uint64_t decode_is_large(uint64_t value, unsigned bits)
{
	return (value + (1ull << bits)) >> (bits + 1);
}

static inline int64_t decode_time_ns(const struct store_clock *clock, uint64_t ticks)
{
	bool before = ticks < clock->base_ticks;
	uint64_t past = before ? clock->base_ticks - ticks : ticks - clock->base_ticks;
	int64_t ns;

	if (__builtin_expect(past >> DECODE_TICKS_BITS | clock->mult >> DECODE_MULT_BITS |
				     decode_is_large((uint64_t)clock->base_ns, DECODE_BASE_BITS) |
				     clock->piece_count,
			     0))
		return store_clock_ns(clock, ticks);
	ns = (int64_t)(((unsigned __int128)past * clock->mult) >> 32);
	return clock->base_ns + (before ? -ns : ns);
}

static inline int64_t decode_span_ns(const struct store_clock *clock, uint64_t ticks)
{
	if (__builtin_expect(ticks >> DECODE_TICKS_BITS | clock->mult >> DECODE_MULT_BITS, 0))
		return store_clock_span_ns(clock, ticks);
	return (int64_t)(((unsigned __int128)ticks * clock->mult) >> 32);
}

#endif
