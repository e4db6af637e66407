/* Text of rows may hold any bytes; DuckDB needs UTF-8. The check is fast for ASCII, which is
   most of it. */
#ifndef KYMO_TABLES_WORDS_H
#define KYMO_TABLES_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Room for `bytes` of text with each invalid byte replaced by U+FFFD, and a NUL. */
#define WORDS_REPAIRED_BYTES(bytes) ((size_t)(bytes)*3 + 1)

/* Whether a text without NUL is valid UTF-8; base/utf8.h repairs it otherwise. */
bool words_valid(const char *text, size_t bytes);
/* Removes an incomplete character at the end of a truncated text, and the addresses of this process
   that DuckDB adds to the messages of its internal errors. */
void words_trim(char *text);

#endif
