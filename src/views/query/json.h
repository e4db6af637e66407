/* JSON text. */
#ifndef KYMO_VIEWS_QUERY_JSON_H
#define KYMO_VIEWS_QUERY_JSON_H

#include <stddef.h>

#include "base/buf.h"

/* A string with its quotes: bytes that are not UTF-8 become U+FFFD, control bytes are escaped. */
void json_text(struct buf *out, const char *text, size_t bytes);

#endif
