/* Formats of numbers for people. Each function returns a struct that holds the text:
 *
 *	printf("%s\n", format_duration(84900, true).text);	84.9 µs
 */
#ifndef KYMO_VIEWS_TERM_FORMAT_H
#define KYMO_VIEWS_TERM_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

struct format_text {
	char text[40];
};

/* Three digits and a unit: 85.7 s, 1.20 ms, 84.9 µs (us without utf8), 85 ns, 27.8 h. */
struct format_text format_duration(double ns, bool utf8);
/* For a whole run: 4:34, 1:02:03; below a minute as format_duration(). */
struct format_text format_clock(double ns, bool utf8);
/* 20,787 */
struct format_text format_count(uint64_t count);
/* At most 9 characters: 9,999,999, then 12.3 M, 4.56 G. */
struct format_text format_count_short(uint64_t count);
/* Decimal: 512 B, 12 kB, 75 MB, 3.01 GB. */
struct format_text format_bytes(double bytes);
/* A share (0.164): 16 %, 0.31 %, 100 %; 0 % and 100 % only if exact. */
struct format_text format_percent(double share);
/* The shortest decimal that reads back as the same double; "nan", "inf", "-inf". */
struct format_text format_double(double value);
/* The same for files: whole numbers without a point, `unknown` if it is not a number. */
struct format_text format_number(double value, const char *unknown);

#endif
