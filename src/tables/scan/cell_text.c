#include "tables/scan/cell_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------- */

void cell_text_u128(struct buf *out, cell_u128 value, bool negative)
{
	char digits[48];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value);
	if (negative)
		digits[--at] = '-';
	buf_add(out, digits + at, sizeof(digits) - at);
}

static cell_u128 magnitude(duckdb_hugeint value)
{
	cell_u128 bits = (cell_u128)(uint64_t)value.upper << 64 | value.lower;

	return value.upper < 0 ? -bits : bits;
}

void cell_text_hugeint(struct buf *out, duckdb_hugeint value)
{
	cell_text_u128(out, magnitude(value), value.upper < 0);
}

void cell_text_decimal(struct buf *out, duckdb_hugeint value, unsigned scale)
{
	cell_u128 whole = magnitude(value), power = 1, rest;
	char digits[48];

	for (unsigned i = 0; i < scale; i++)
		power *= 10;
	cell_text_u128(out, whole / power, value.upper < 0);
	if (!scale)
		return;
	rest = whole % power;
	for (unsigned i = scale; i-- > 0; rest /= 10)
		digits[i] = (char)('0' + (int)(rest % 10));
	buf_char(out, '.');
	buf_add(out, digits, scale);
}

/* The shortest text that reads back as the same number. */
void cell_text_double(struct buf *out, double value, bool single)
{
	char text[40];

	if (isnan(value) || isinf(value)) {
		buf_text(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return;
	}
	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	buf_text(out, text);
	if (!strpbrk(text, ".e"))
		buf_text(out, ".0");
}

/* 3 bytes of sign and length, then the magnitude, highest byte first; all inverted if negative. */
void cell_text_bignum(struct buf *out, const unsigned char *bytes, size_t count)
{
	bool negative = count > 3 && !(bytes[0] & 0x80);
	/* 2.41 digits per byte. */
	size_t room = count * 5 / 2 + 2, used = 0;
	unsigned char *digits = calloc(1, room);

	if (!digits || count <= 3) {
		buf_text(out, "0");
		free(digits);
		return;
	}
	for (size_t i = 3; i < count; i++) {
		unsigned carry = negative ? (unsigned char)~bytes[i] : bytes[i];

		for (size_t k = 0; k < used || carry; k++) {
			carry += digits[k] * 256u;
			digits[k] = (unsigned char)(carry % 10);
			carry /= 10;
			used = k + 1 > used ? k + 1 : used;
		}
	}
	if (negative)
		buf_char(out, '-');
	if (!used)
		buf_char(out, '0');
	while (used)
		buf_char(out, (char)('0' + digits[--used]));
	free(digits);
}

void cell_text_uuid(struct buf *out, duckdb_hugeint value)
{
	/* Stored with its first bit flipped, so that it sorts. */
	uint64_t high = (uint64_t)value.upper ^ 1ull << 63, low = value.lower;

	buf_print(out, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
		  high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffffffffffff);
}

/* ---- times ------------------------------------------------------------------------------- */

static int64_t floor_divide(int64_t a, int64_t b, int64_t *rest)
{
	int64_t quotient = a / b;

	if (a % b < 0)
		quotient--;
	*rest = a - quotient * b;
	return quotient;
}

/* Days since 1970 to a date of the proleptic Gregorian calendar; an era is 400 years. */
static void add_date(struct buf *out, int64_t days)
{
	int64_t day_of_era, era = floor_divide(days + 719468, 146097, &day_of_era);
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
			       day_of_era / 146096) /
			      365;
	int64_t day_of_year = day_of_era -
			      (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month = (5 * day_of_year + 2) / 153;
	int64_t day = day_of_year - (153 * month + 2) / 5 + 1, year;

	month += month < 10 ? 3 : -9;
	year = year_of_era + era * 400 + (month <= 2);
	buf_print(out, "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "%s", year > 0 ? year : 1 - year,
		  month, day, year > 0 ? "" : " (BC)");
}

void cell_text_date(struct buf *out, int32_t days)
{
	if (days == INT32_MAX || days == -INT32_MAX)
		buf_text(out, days > 0 ? "infinity" : "-infinity");
	else
		add_date(out, days);
}

/* ".5", ".123456789": without trailing zeros. */
static void add_fraction(struct buf *out, int64_t part, int64_t per_second)
{
	int digits = 0;

	if (!part)
		return;
	for (int64_t power = per_second; power > 1; power /= 10)
		digits++;
	for (; part % 10 == 0; part /= 10)
		digits--;
	buf_print(out, ".%0*" PRId64, digits, part);
}

void cell_text_time(struct buf *out, int64_t ticks, int64_t per_second)
{
	int64_t part, seconds = floor_divide(ticks, per_second, &part);

	buf_print(out, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600, seconds / 60 % 60,
		  seconds % 60);
	add_fraction(out, part, per_second);
}

void cell_text_timestamp(struct buf *out, int64_t ticks, int64_t per_second, bool zoned)
{
	int64_t of_day, days;

	if (ticks == INT64_MAX || ticks == -INT64_MAX) {
		buf_text(out, ticks > 0 ? "infinity" : "-infinity");
		return;
	}
	days = floor_divide(ticks, per_second * 86400, &of_day);
	add_date(out, days);
	buf_char(out, ' ');
	cell_text_time(out, of_day, per_second);
	/* Always in UTC, independent of the session's time zone. */
	if (zoned)
		buf_text(out, "+00");
}

void cell_text_time_tz(struct buf *out, uint64_t bits)
{
	/* 40 bits of µs, then the offset, stored as its distance from the largest one. */
	int64_t offset = 57599 - (int64_t)(bits & 0xffffff), size = offset < 0 ? -offset : offset;

	cell_text_time(out, (int64_t)(bits >> 24), 1000000);
	buf_print(out, "%c%02" PRId64, offset < 0 ? '-' : '+', size / 3600);
	if (size / 60 % 60)
		buf_print(out, ":%02" PRId64, size / 60 % 60);
}

static void add_unit(struct buf *out, int32_t count, const char *unit, size_t began)
{
	if (count)
		buf_print(out, "%s%" PRId32 " %s%s", out->used > began ? " " : "", count, unit,
			  count == 1 || count == -1 ? "" : "s");
}

void cell_text_interval(struct buf *out, duckdb_interval value)
{
	size_t began = out->used;
	int64_t micros = value.micros;

	add_unit(out, value.months / 12, "year", began);
	add_unit(out, value.months % 12, "month", began);
	add_unit(out, value.days, "day", began);
	if (!micros && out->used > began)
		return;
	buf_print(out, "%s%s", out->used > began ? " " : "", micros < 0 ? "-" : "");
	cell_text_time(out, micros < 0 && micros != INT64_MIN ? -micros : micros, 1000000);
}

/* ---- bytes ------------------------------------------------------------------------------- */

void cell_text_blob(struct buf *out, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] >= ' ' && bytes[i] < 127 && !strchr("\\'\"", bytes[i]))
			buf_char(out, (char)bytes[i]);
		else
			buf_print(out, "\\x%02X", bytes[i]);
}

/* The first byte is the number of unused bits of the second. */
void cell_text_bit(struct buf *out, const unsigned char *bytes, size_t count)
{
	size_t unused = count ? bytes[0] : 0;

	for (size_t i = 8 + unused; i < count * 8; i++)
		buf_char(out, bytes[i / 8] >> (7 - i % 8) & 1 ? '1' : '0');
}
