/* Makes text from files valid UTF-8: bad bytes and NUL become U+FFFD. */
#ifndef KYMO_BASE_UTF8_H
#define KYMO_BASE_UTF8_H

#include <stddef.h>

/* Length of the valid character at text[0, bytes), or 0. */
size_t utf8_valid(const char *text, size_t bytes);
/* Length of the repaired text in bytes. */
size_t utf8_repaired_bytes(const char *text, size_t bytes);
/* Writes at most out_bytes - 1 bytes and a NUL, truncated between characters; returns the
   length. */
size_t utf8_repair(const char *text, size_t bytes, char *out, size_t out_bytes);

#endif
