#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* One row for each form: the lead byte, and the range of the second byte, which excludes overlong
   forms, surrogates and values above U+10FFFF. */
static const struct form {
	unsigned char lead_low, lead_high, bytes, second_low, second_high;
} forms[] = {
	{ 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
	{ 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf },
	{ 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

size_t utf8_valid(const char *text, size_t bytes)
{
	const unsigned char *at = (const unsigned char *)text;
	const struct form *form = forms;

	if (!bytes || !at[0])
		return 0;
	if (at[0] < 0x80)
		return 1;
	while (form < forms + sizeof(forms) / sizeof(forms[0]) &&
	       (at[0] < form->lead_low || at[0] > form->lead_high))
		form++;
	if (form == forms + sizeof(forms) / sizeof(forms[0]) || bytes < form->bytes ||
	    at[1] < form->second_low || at[1] > form->second_high)
		return 0;
	for (size_t i = 2; i < form->bytes; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return form->bytes;
}

size_t utf8_repaired_bytes(const char *text, size_t bytes)
{
	size_t total = 0;

	while (bytes) {
		size_t valid = utf8_valid(text, bytes);
		size_t step = valid ? valid : 1;

		total += valid ? valid : 3;
		text += step;
		bytes -= step;
	}
	return total;
}

size_t utf8_repair(const char *text, size_t bytes, char *out, size_t out_bytes)
{
	size_t used = 0;

	while (bytes) {
		size_t valid = utf8_valid(text, bytes);
		size_t step = valid ? valid : 1;
		size_t need = valid ? valid : 3;

		if (need >= out_bytes - used)
			break;
		memcpy(out + used, valid ? text : REPLACEMENT, need);
		used += need;
		text += step;
		bytes -= step;
	}
	out[used] = '\0';
	return used;
}
