#include "views/query/json.h"

#include <string.h>

#include "views/term/text.h"

static void add_escaped(struct buf *out, unsigned char c)
{
	static const char shorts[128] = { ['"'] = '"',	['\\'] = '\\', ['\n'] = 'n', ['\t'] = 't',
					  ['\r'] = 'r', ['\b'] = 'b',  ['\f'] = 'f' };

	if (c < 128 && shorts[c]) {
		buf_char(out, '\\');
		buf_char(out, shorts[c]);
	} else {
		buf_print(out, "\\u%04x", c);
	}
}

static int json_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_text(struct buf *out, const char *text, size_t bytes)
{
	size_t at = 0, end, one;

	buf_char(out, '"');
	while (at < bytes) {
		for (end = at; end < bytes && json_is_plain((unsigned char)text[end]); end++)
			;
		buf_add(out, text + at, end - at);
		at = end;
		if (at == bytes)
			break;
		one = text_character(text + at, bytes - at, NULL);
		if (!one)
			buf_text(out, "\xef\xbf\xbd");
		else if (one == 1)
			add_escaped(out, (unsigned char)text[at]);
		else
			buf_add(out, text + at, one);
		at += one ? one : 1;
	}
	buf_char(out, '"');
}
