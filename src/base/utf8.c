#include "base/utf8.h"

#include <stdio.h>
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

/* ---- printable form -------------------------------------------------------------------------- */

static uint32_t code_of(const char *text, size_t valid)
{
	const unsigned char *at = (const unsigned char *)text;
	uint32_t code = valid == 1 ? at[0] : at[0] & (0x7fu >> valid);

	for (size_t i = 1; i < valid; i++)
		code = code << 6 | (at[i] & 0x3fu);
	return code;
}

bool utf8_acts(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0xad, 0xad },	      { 0x61c, 0x61c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && code >= ranges[i].first; i++)
		if (code <= ranges[i].last)
			return true;
	return false;
}

size_t utf8_show(const char *text, size_t bytes, char shown[UTF8_SHOWN_BYTES], size_t *shown_bytes)
{
	static const char short_names[] = { ['\a'] = 'a', ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',
					    ['\v'] = 'v', ['\f'] = 'f', ['\r'] = 'r' };
	size_t valid = utf8_valid(text, bytes);
	uint32_t code = valid ? code_of(text, valid) : (unsigned char)text[0];
	int wrote;

	if (valid && !utf8_acts(code)) {
		memcpy(shown, text, valid);
		*shown_bytes = valid;
		return valid;
	}
	if (valid && code < sizeof(short_names) && short_names[code])
		wrote = snprintf(shown, UTF8_SHOWN_BYTES, "\\%c", short_names[code]);
	else if (valid && code >= 0x80)
		wrote = snprintf(shown, UTF8_SHOWN_BYTES, "\\u%04x", code);
	else
		wrote = snprintf(shown, UTF8_SHOWN_BYTES, "\\x%02x", code);
	*shown_bytes = (size_t)wrote;
	return valid ? valid : 1;
}

size_t utf8_visible(const char *text, size_t bytes, char *out, size_t out_bytes)
{
	char shown[UTF8_SHOWN_BYTES];
	size_t used = 0, shown_bytes;

	for (size_t at = 0; at < bytes; used += shown_bytes) {
		at += utf8_show(text + at, bytes - at, shown, &shown_bytes);
		if (shown_bytes >= out_bytes - used)
			break;
		memcpy(out + used, shown, shown_bytes);
	}
	out[used] = '\0';
	return used;
}
