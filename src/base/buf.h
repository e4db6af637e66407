/* A growing text. After a failed allocation it no longer changes and `failed` is set: check once,
   at the end. */
#ifndef KYMO_BASE_BUF_H
#define KYMO_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NUL-terminated; NULL before the first addition */
	size_t used;
	size_t room;
	bool failed;
};

void buf_add(struct buf *buf, const void *bytes, size_t count);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char c);
void buf_fill(struct buf *buf, char c, size_t count);
void buf_print(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "" if nothing was added. */
const char *buf_get(const struct buf *buf);
void buf_reset(struct buf *buf); /* empties it, keeps its memory */
void buf_fini(struct buf *buf);

#endif
