#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct buf *buf, size_t count)
{
	size_t room = buf->room ? buf->room : 256;
	char *data;

	if (buf->failed || count >= SIZE_MAX / 2 - buf->used) {
		buf->failed = true;
		return false;
	}
	if (buf->data && buf->room - buf->used > count)
		return true;
	while (room - buf->used <= count)
		room *= 2;
	data = realloc(buf->data, room);
	if (!data) {
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->room = room;
	return true;
}

void buf_add(struct buf *buf, const void *bytes, size_t count)
{
	if (!reserve(buf, count))
		return;
	if (count)
		memcpy(buf->data + buf->used, bytes, count);
	buf->used += count;
	buf->data[buf->used] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void buf_fill(struct buf *buf, char c, size_t count)
{
	if (!reserve(buf, count))
		return;
	memset(buf->data + buf->used, c, count);
	buf->used += count;
	buf->data[buf->used] = '\0';
}

void buf_print(struct buf *buf, const char *format, ...)
{
	va_list args, again;
	int count;

	va_start(args, format);
	va_copy(again, args);
	count = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (count >= 0 && reserve(buf, (size_t)count)) {
		vsnprintf(buf->data + buf->used, (size_t)count + 1, format, again);
		buf->used += (size_t)count;
	}
	va_end(again);
}

const char *buf_get(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

void buf_reset(struct buf *buf)
{
	buf->used = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_fini(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ 0 };
}
