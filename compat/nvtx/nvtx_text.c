#include "nvtx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void nvtx_text_add(struct nvtx_text *out, const char *text, size_t bytes)
{
	const size_t room = sizeof(out->text) - 1 - out->bytes;

	bytes = bytes < room ? bytes : room;
	memcpy(out->text + out->bytes, text, bytes);
	out->bytes += bytes;
	out->text[out->bytes] = '\0';
}

void nvtx_text_print(struct nvtx_text *out, const char *format, ...)
{
	char text[512];
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (bytes > 0)
		nvtx_text_add(out, text,
			      (size_t)bytes < sizeof(text) ? (size_t)bytes : sizeof(text) - 1);
}

/* ---- characters ---- */

static void add_character(struct nvtx_text *out, uint32_t code)
{
	char bytes[4];
	size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
		code = 0xfffd;
		count = 3;
	}
	for (size_t i = count; i-- > 1; code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3f));
	bytes[0] = (char)(count == 1 ? code : (0xf00u >> count & 0xffu) | code);
	if (out->bytes + count < sizeof(out->text)) /* whole or not at all */
		nvtx_text_add(out, bytes, count);
}

static uint32_t unit_at(const void *units, size_t index, size_t width)
{
	uint16_t narrow;
	uint32_t wide;

	if (width == 2) {
		memcpy(&narrow, (const char *)units + 2 * index, 2);
		return narrow;
	}
	memcpy(&wide, (const char *)units + 4 * index, 4);
	return wide;
}

void nvtx_text_add_units(struct nvtx_text *out, const void *units, size_t count, size_t width)
{
	if (width == 1) {
		nvtx_text_add(out, units, strnlen(units, count));
		return;
	}
	for (size_t i = 0; i < count && out->bytes < sizeof(out->text) - 4; i++) {
		uint32_t code = unit_at(units, i, width), next;

		if (!code)
			return;
		if (width == 2 && code >> 10 == 0x36 && i + 1 < count) {
			next = unit_at(units, i + 1, width);
			if (next >> 10 == 0x37) {
				code = 0x10000 + ((code & 0x3ff) << 10 | (next & 0x3ff));
				i++;
			}
		}
		add_character(out, code);
	}
}
