#include "views/query/json.h"

#include <string.h>

#include "base/utf8.h"
#include "views/term/text.h"

static void add_escaped(struct buf *out, uint32_t c)
{
	static const char shorts[128] = { ['"'] = '"',	['\\'] = '\\', ['\n'] = 'n', ['\t'] = 't',
					  ['\r'] = 'r', ['\b'] = 'b',  ['\f'] = 'f' };

	if (c < 128 && shorts[c]) {
		buf_char(out, '\\');
		buf_char(out, shorts[c]);
	} else if (c < 0x10000) {
		buf_print(out, "\\u%04x", c);
	} else { /* two surrogates */
		buf_print(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
			  0xdc00 + ((c - 0x10000) & 0x3ff));
	}
}

static int json_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_text(struct buf *out, const char *text, size_t bytes)
{
	size_t at = 0, end, one;
	uint32_t code = 0;

	buf_char(out, '"');
	while (at < bytes) {
		for (end = at; end < bytes && json_is_plain((unsigned char)text[end]); end++)
			;
		buf_add(out, text + at, end - at);
		at = end;
		if (at == bytes)
			break;
		one = text_character(text + at, bytes - at, &code);
		if (!one)
			buf_text(out, "\xef\xbf\xbd");
		else if (one == 1 || utf8_acts(code)) /* so that JSON cannot drive a terminal */
			add_escaped(out, code);
		else
			buf_add(out, text + at, one);
		at += one ? one : 1;
	}
	buf_char(out, '"');
}
