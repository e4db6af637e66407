/* The trace and the span that a program belongs to, as W3C Trace Context writes them in a header
   and in the environment variable TRACEPARENT: 00-TRACE-SPAN-FLAGS, in lower-case hexadecimal. */
#ifndef KYMO_COLLECT_TRACEPARENT_H
#define KYMO_COLLECT_TRACEPARENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mark of the collector: its text is the TRACEPARENT that it was started with. */
#define TRACEPARENT_MARK "traceparent"
#define TRACEPARENT_BYTES 55 /* without its NUL */

struct traceparent {
	uint8_t trace[16], span[8];
};

static inline bool traceparent_hex(const char *text, uint8_t *out, size_t count)
{
	uint8_t any = 0;

	for (size_t i = 0; i < 2 * count; i++) {
		char c = text[i];
		uint8_t digit;

		if (c >= '0' && c <= '9')
			digit = (uint8_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (uint8_t)(c - 'a' + 10);
		else
			return false;
		out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
		any |= digit;
	}
	return any; /* zeros are invalid */
}

/* False: it is none. Later versions may have more fields after these. */
static inline bool traceparent_read(const char *text, struct traceparent *out)
{
	size_t bytes = 0;

	while (bytes <= TRACEPARENT_BYTES && text[bytes])
		bytes++;
	return bytes >= TRACEPARENT_BYTES && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
	       !(text[0] == 'f' && text[1] == 'f') &&
	       (bytes == TRACEPARENT_BYTES ||
		(text[55] == '-' && (text[0] != '0' || text[1] != '0'))) &&
	       traceparent_hex(text + 3, out->trace, 16) &&
	       traceparent_hex(text + 36, out->span, 8);
}

#endif
