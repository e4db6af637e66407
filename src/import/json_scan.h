/*
 * A scanner of JSON in a window of a file. It copies nothing: texts point into the window, escapes
 * and all. Values that are not wanted are skipped unparsed, at any depth and without recursion.
 * It is as lenient as browsers are with traces: what is skipped need not be
 * valid, and control characters in texts are kept.
 *
 * The window ends with JSON_SCAN_PADDING zero bytes, so that no function looks at a bound for each
 * byte. At the end of the window a function sets `state` to JSON_MORE: the caller moves
 * the window and begins the value again.
 */
#ifndef KYMO_IMPORT_JSON_SCAN_H
#define KYMO_IMPORT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define JSON_SCAN_PADDING 64

enum json_state { JSON_OK, JSON_MORE, JSON_BAD };

struct json_scan {
	const char *at, *end;
	enum json_state state;
};

/* The bytes between the quotes. */
struct json_text {
	const char *at;
	uint32_t bytes;
	bool escaped; /* a backslash is in it */
};

/* A number, or a text that holds one, as old traces have them. */
struct json_number {
	int64_t value; /* in units of 10^-digits: see json_scan_number() */
	bool is_number; /* false: another value, which was skipped */
	bool out_of_range; /* beyond 2^63 */
	bool is_text;
	struct json_text text; /* if is_text */
};

/* Skips white space. Returns the byte there; 0 at the end of the window, with state JSON_MORE. */
char json_scan_next(struct json_scan *scan);
/* At a quote. */
bool json_scan_text(struct json_scan *scan, struct json_text *out);
/* Any value. False: end of the window, or not JSON. */
bool json_scan_skip(struct json_scan *scan);
/* Any value; numbers in units of 10^-digits, exact, later digits are cut off: 1.5e3 with 3 digits
   is 1500000. */
bool json_scan_number(struct json_scan *scan, int digits, struct json_number *out);
/* Any value; false: see state. */
bool json_scan_double(struct json_scan *scan, double *out, bool *is_number);
/* Call it again and again inside an object, first after its {. False: the object ended, or state is
   not JSON_OK. The caller takes the value. */
bool json_scan_key(struct json_scan *scan, struct json_text *key);
/* The same for an array: false at its end. */
bool json_scan_item(struct json_scan *scan);

static inline bool json_text_is(const struct json_text *text, const char *word, size_t bytes)
{
	return text->bytes == bytes && (!bytes || !memcmp(text->at, word, bytes));
}
#define JSON_TEXT_IS(text, literal) json_text_is((text), literal, sizeof(literal) - 1)

/* Without escapes (if `escaped` is set), as UTF-8 (lone surrogates become U+FFFD), NUL-terminated,
   cut to fit at a character. Returns the length. */
size_t json_text_plain(const struct json_text *text, char *out, size_t out_bytes);

/* ---- a value of any length ---- */

/* Skips a value that may be longer than the window. Begin with { 0 }; true: the value has ended. */
struct json_skip {
	uint64_t depth;
	bool in_text, after_backslash, begun;
};
bool json_skip_more(struct json_skip *skip, struct json_scan *scan);

/* Writes a text in quotes, with control characters, quotes and backslashes escaped. */
void json_put_text(struct buf *out, const char *text, size_t bytes);

#endif
