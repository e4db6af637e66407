/* Text from rows may be anything; DuckDB wants UTF-8. Most of it is plain ASCII, and that is
   found fast. */
#ifndef KYMO_TABLES_WORDS_H
#define KYMO_TABLES_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Room for `bytes` of bad text once each bad byte is U+FFFD, and a NUL. */
#define WORDS_REPAIRED_BYTES(bytes) ((size_t)(bytes)*3 + 1)

/* Whether text without NUL is UTF-8; where not, base/utf8.h repairs it. */
bool words_valid(const char *text, size_t bytes);
/* Cuts a NUL-ended text that was cut by its room at the last whole character. */
void words_trim(char *text);

#endif
