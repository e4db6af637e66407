#include "tables/words.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static size_t ascii_bytes(const char *text, size_t bytes)
{
	size_t at = 0;
	uint64_t word;

	for (; bytes - at >= 8; at += 8) {
		memcpy(&word, text + at, 8);
		if (word & 0x8080808080808080ull)
			break;
	}
	while (at < bytes && !(text[at] & 0x80))
		at++;
	return at;
}

bool words_valid(const char *text, size_t bytes)
{
	size_t at = ascii_bytes(text, bytes), step;

	for (; at < bytes; at += step) {
		step = utf8_valid(text + at, bytes - at);
		if (!step)
			return false;
	}
	return true;
}

static void cut_stack_trace(char *text)
{
	char *trace = strstr(text, "Stack Trace:");

	while (trace && trace > text && (trace[-1] == '\n' || trace[-1] == ' '))
		trace--;
	if (trace && strstr(text, "INTERNAL Error"))
		*trace = '\0';
}

void words_trim(char *text)
{
	size_t bytes, start;

	cut_stack_trace(text);
	bytes = start = strlen(text);
	while (start > 0 && bytes - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start > 0 && (text[start - 1] & 0x80) &&
	    !utf8_valid(text + start - 1, bytes - start + 1))
		text[start - 1] = 0;
}
