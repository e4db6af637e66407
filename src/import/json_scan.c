#include "import/json_scan.h"

#include <stdlib.h>

#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- bytes --------------------------------------------------------------------------------- */

static inline bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

char json_scan_next(struct json_scan *scan)
{
	const char *at = scan->at;

	while (is_space(*at))
		at++;
	scan->at = at;
	if (at >= scan->end) {
		scan->at = scan->end;
		scan->state = JSON_MORE;
		return 0;
	}
	return *at;
}

/* The first quote or backslash at or after `at`; `end` or later: none. Reads the padding. */
#ifdef __SSE2__
static inline const char *find_quote(const char *at, const char *end)
{
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');

	for (; at < end; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote),
							   _mm_cmpeq_epi8(bytes, backslash)));

		if (found)
			return at + __builtin_ctz((unsigned)found);
	}
	return end;
}

/* The first quote, bracket or brace: [ and { differ by one bit, and so do ] and }. */
static inline const char *find_nesting(const char *at, const char *end)
{
	const __m128i quote = _mm_set1_epi8('"'), begin = _mm_set1_epi8('{'),
		      close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);

	for (; at < end; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i folded = _mm_or_si128(bytes, bit);
		__m128i hit = _mm_or_si128(
			_mm_cmpeq_epi8(bytes, quote),
			_mm_or_si128(_mm_cmpeq_epi8(folded, begin), _mm_cmpeq_epi8(folded, close)));
		int found = _mm_movemask_epi8(hit);

		if (found)
			return at + __builtin_ctz((unsigned)found);
	}
	return end;
}
#else
static inline const char *find_quote(const char *at, const char *end)
{
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

static inline const char *find_nesting(const char *at, const char *end)
{
	while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
		at++;
	return at;
}
#endif

static bool scan_fails(struct json_scan *scan, enum json_state state)
{
	scan->state = state;
	return false;
}

/* ---- texts --------------------------------------------------------------------------------- */

bool json_scan_text(struct json_scan *scan, struct json_text *out)
{
	const char *from = scan->at + 1, *at = from;

	out->escaped = false;
	for (;;) {
		at = find_quote(at, scan->end);
		if (at >= scan->end)
			return scan_fails(scan, JSON_MORE);
		if (*at == '"')
			break;
		out->escaped = true;
		at += 2;
	}
	out->at = from;
	out->bytes = (uint32_t)(at - from);
	scan->at = at + 1;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits after \u; -1: others. */
static int32_t hex_four(const char *at, const char *end)
{
	int32_t code = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(at[i]);

		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

static size_t put_utf8(uint32_t code, char out[4])
{
	if (code < 0x80)
		return out[0] = (char)code, 1;
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 63));
		out[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 63));
	out[2] = (char)(0x80 | (code >> 6 & 63));
	out[3] = (char)(0x80 | (code & 63));
	return 4;
}

/* *at is after \u. Moves it behind the digits, of both halves of a pair. */
static uint32_t take_code(const char **at, const char *end)
{
	int32_t code = hex_four(*at, end), low;

	if (code < 0)
		return 0xfffd;
	*at += 4;
	if (code < 0xd800 || code > 0xdfff)
		return code ? (uint32_t)code : 0xfffd; /* names hold no NUL */
	if (code > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
		return 0xfffd;
	low = hex_four(*at + 2, end);
	if (low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*at += 6;
	return 0x10000u + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
}

/* The character of an escape; *at is after the backslash. */
static uint32_t take_escape(const char **at, const char *end)
{
	const char c = *(*at)++;

	switch (c) {
	case 'n': return '\n';
	case 't': return '\t';
	case 'r': return '\r';
	case 'b': return '\b';
	case 'f': return '\f';
	case 'u': return take_code(at, end);
	default: return (unsigned char)c;
	}
}

/* A text that was cut may end in the middle of a character: its first byte tells the length. */
static size_t without_cut_character(const char *text, size_t bytes)
{
	size_t from = bytes;

	while (from && bytes - from < 3 && (text[from - 1] & 0xc0) == 0x80)
		from--;
	if (!from || (unsigned char)text[from - 1] < 0xc0)
		return bytes; /* whole, or not UTF-8 at all */
	return utf8_valid(text + from - 1, bytes - from + 1) ? bytes : from - 1;
}

size_t json_text_plain(const struct json_text *text, char *out, size_t out_bytes)
{
	const char *at = text->bytes ? text->at : "", *end = at + text->bytes;
	size_t used = 0, bytes;
	bool cut = false;
	char code[4];

	while (at < end && !cut) {
		if (text->escaped && *at == '\\' && at + 1 < end) {
			at++;
			bytes = put_utf8(take_escape(&at, end), code);
		} else {
			code[0] = *at++;
			bytes = 1;
		}
		cut = used + bytes >= out_bytes;
		if (!cut)
			memcpy(out + used, code, bytes);
		used += cut ? 0 : bytes;
	}
	if (cut)
		used = without_cut_character(out, used);
	out[used] = '\0';
	return used;
}

/* ---- values -------------------------------------------------------------------------------- */

/* An object or an array; scan->at is at its first byte. */
static bool skip_nested(struct json_scan *scan)
{
	const char *at = scan->at;
	struct json_text text;
	uint64_t depth = 0;

	do {
		at = find_nesting(at, scan->end);
		if (at >= scan->end)
			return scan_fails(scan, JSON_MORE);
		if (*at == '"') {
			scan->at = at;
			if (!json_scan_text(scan, &text))
				return false;
			at = scan->at;
		} else {
			depth += (*at | 0x20) == '{' ? 1 : (uint64_t)-1;
			at++;
		}
	} while (depth);
	scan->at = at;
	return true;
}

static inline bool ends_word(char c)
{
	return c == ',' || c == '}' || c == ']' || is_space(c);
}

/* A number, true, false, null, NaN or another word. */
static bool skip_word(struct json_scan *scan)
{
	const char *at = scan->at;

	while (*at && !ends_word(*at) && *at != '"' && *at != '{' && *at != '[' && *at != ':')
		at++;
	if (at >= scan->end)
		return scan_fails(scan, JSON_MORE);
	if (at == scan->at)
		return scan_fails(scan, JSON_BAD);
	scan->at = at;
	return true;
}

bool json_scan_skip(struct json_scan *scan)
{
	struct json_text text;

	switch (json_scan_next(scan)) {
	case 0: return scan->state == JSON_MORE ? false : scan_fails(scan, JSON_BAD);
	case '"': return json_scan_text(scan, &text);
	case '{':
	case '[': return skip_nested(scan);
	default: return skip_word(scan);
	}
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool scale(int64_t *value, int exponent)
{
	for (; exponent > 0 && *value; exponent--)
		if (__builtin_mul_overflow(*value, 10, value))
			return false;
	for (; exponent < 0 && *value; exponent++)
		*value /= 10;
	return true;
}

/* After the e of a number; beyond ±400 it makes no difference. */
static const char *take_exponent(const char *at, int *exponent)
{
	bool negative = *at == '-';
	int value = 0;

	if (*at == '-' || *at == '+')
		at++;
	for (; *at >= '0' && *at <= '9'; at++)
		value = value < 400 ? value * 10 + (*at - '0') : value;
	*exponent = negative ? -value : value;
	return at;
}

/* Adds a digit unless the number is full; false: it is. */
static inline bool add_digit(uint64_t *value, char digit)
{
	if (*value >= UINT64_C(922337203685477580))
		return false;
	*value = *value * 10 + (uint64_t)(digit - '0');
	return true;
}

/* From the first digit or sign. Returns the byte after it. */
static const char *take_number(const char *at, int digits, struct json_number *out)
{
	bool negative = *at == '-';
	uint64_t value = 0;
	int exponent = 0, more = digits;

	at += negative;
	for (; *at >= '0' && *at <= '9'; at++)
		if (!add_digit(&value, *at))
			more++;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++)
			more -= add_digit(&value, *at);
	if (*at == 'e' || *at == 'E')
		at = take_exponent(at + 1, &exponent);
	out->value = negative ? -(int64_t)value : (int64_t)value;
	out->out_of_range = !scale(&out->value, more + exponent);
	return at;
}

static bool number_of_text(struct json_scan *scan, int digits, struct json_number *out)
{
	if (!json_scan_text(scan, &out->text))
		return false;
	out->is_text = true;
	if (out->text.bytes && out->text.bytes < 40 &&
	    ((out->text.at[0] >= '0' && out->text.at[0] <= '9') || out->text.at[0] == '-'))
		out->is_number = take_number(out->text.at, digits, out) ==
				 out->text.at + out->text.bytes;
	return true;
}

bool json_scan_number(struct json_scan *scan, int digits, struct json_number *out)
{
	char c = json_scan_next(scan);
	const char *at;

	out->value = 0;
	out->is_number = out->out_of_range = out->is_text = false;
	if (c == '"')
		return number_of_text(scan, digits, out);
	if ((c < '0' || c > '9') && c != '-')
		return c ? json_scan_skip(scan) : scan->state != JSON_OK && false;
	at = take_number(scan->at, digits, out);
	if (at >= scan->end)
		return scan_fails(scan, JSON_MORE);
	if (!ends_word(*at))
		return skip_word(scan);
	scan->at = at;
	out->is_number = true;
	return true;
}

/* Exact: the text is that of a double which was printed with enough digits. */
bool json_scan_double(struct json_scan *scan, double *out, bool *is_number)
{
	char c = json_scan_next(scan), digits[64];
	const char *from = scan->at;
	size_t bytes;
	char *end;

	*is_number = false;
	if (!json_scan_skip(scan))
		return false;
	bytes = (size_t)(scan->at - from);
	if (c == '"' && bytes > 2) { /* a number as a text */
		from++;
		bytes -= 2;
		c = *from;
	}
	if (((c < '0' || c > '9') && c != '-') || bytes >= sizeof(digits))
		return true;
	memcpy(digits, from, bytes);
	digits[bytes] = '\0';
	*out = strtod(digits, &end);
	*is_number = end == digits + bytes && *out - *out == 0; /* finite */
	return true;
}

/* ---- objects and arrays -------------------------------------------------------------------- */

bool json_scan_key(struct json_scan *scan, struct json_text *key)
{
	char c = json_scan_next(scan);

	if (c == ',') {
		scan->at++;
		c = json_scan_next(scan);
	}
	if (c == '}') {
		scan->at++;
		return false;
	}
	if (c != '"')
		return scan_fails(scan, scan->state == JSON_MORE ? JSON_MORE : JSON_BAD);
	if (!json_scan_text(scan, key))
		return false;
	c = json_scan_next(scan);
	if (c != ':')
		return scan_fails(scan, scan->state == JSON_MORE ? JSON_MORE : JSON_BAD);
	scan->at++;
	return true;
}

bool json_scan_item(struct json_scan *scan)
{
	char c = json_scan_next(scan);

	if (c == ',') {
		scan->at++;
		c = json_scan_next(scan);
	}
	if (c == ']') {
		scan->at++;
		return false;
	}
	return scan->state == JSON_OK && (c || scan_fails(scan, JSON_BAD));
}

/* ---- values of any length ------------------------------------------------------------------ */

/* The rest of a text, in the window; true: its quote was found. */
static bool skip_text_more(struct json_skip *skip, struct json_scan *scan)
{
	for (; scan->at < scan->end; scan->at++) {
		if (skip->after_backslash)
			skip->after_backslash = false;
		else if (*scan->at == '\\')
			skip->after_backslash = true;
		else if (*scan->at == '"') {
			scan->at++;
			skip->in_text = false;
			return true;
		}
	}
	return false;
}

bool json_skip_more(struct json_skip *skip, struct json_scan *scan)
{
	while (scan->at < scan->end) {
		char c = *scan->at;

		if (skip->in_text) {
			if (skip_text_more(skip, scan) && !skip->depth)
				return true;
			continue;
		}
		if (!skip->depth && skip->begun && ends_word(c))
			return true; /* a word has ended */
		scan->at++;
		skip->begun = skip->begun || !is_space(c);
		if (c == '"') {
			skip->in_text = true;
		} else if ((c | 0x20) == '{') {
			skip->depth++;
		} else if ((c | 0x20) == '}' && skip->depth) {
			skip->depth--;
			if (!skip->depth)
				return true;
		}
	}
	scan->state = JSON_MORE;
	return false;
}

/* ---- writing -------------------------------------------------------------------------------- */

void json_put_text(struct buf *out, const char *text, size_t bytes)
{
	size_t from = 0;

	buf_char(out, '"');
	for (size_t i = 0; i < bytes; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(out, text + from, i - from);
		buf_print(out, "\\u%04x", c);
		from = i + 1;
	}
	buf_add(out, text + from, bytes - from);
	buf_char(out, '"');
}
