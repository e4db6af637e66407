/* Values of DuckDB as text, as DuckDB casts them to VARCHAR. */
#ifndef KYMO_TABLES_SCAN_CELL_TEXT_H
#define KYMO_TABLES_SCAN_CELL_TEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "tables/duck.h"

typedef unsigned __int128 cell_u128;

/* All append. */
void cell_text_u128(struct buf *out, cell_u128 value, bool negative);
void cell_text_hugeint(struct buf *out, duckdb_hugeint value);
void cell_text_decimal(struct buf *out, duckdb_hugeint value, unsigned scale);
void cell_text_uuid(struct buf *out, duckdb_hugeint value);
void cell_text_date(struct buf *out, int32_t days);
/* Ticks since midnight or 1970, `per_second` of them per second. */
void cell_text_time(struct buf *out, int64_t ticks, int64_t per_second);
void cell_text_timestamp(struct buf *out, int64_t ticks, int64_t per_second, bool zoned);
void cell_text_time_tz(struct buf *out, uint64_t bits);
void cell_text_interval(struct buf *out, duckdb_interval value);
void cell_text_blob(struct buf *out, const unsigned char *bytes, size_t count);
void cell_text_bit(struct buf *out, const unsigned char *bytes, size_t count);
void cell_text_bignum(struct buf *out, const unsigned char *bytes, size_t count);
void cell_text_double(struct buf *out, double value, bool single);

#endif
