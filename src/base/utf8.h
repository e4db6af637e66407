/* Text from files and other programs: made valid UTF-8 (bad bytes and NUL become U+FFFD), or
   printable. */
#ifndef KYMO_BASE_UTF8_H
#define KYMO_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid character at text[0, bytes), or 0. */
size_t utf8_valid(const char *text, size_t bytes);
/* Length of the repaired text in bytes. */
size_t utf8_repaired_bytes(const char *text, size_t bytes);
/* Writes at most out_bytes - 1 bytes and a NUL, truncated between characters; returns the
   length. */
size_t utf8_repair(const char *text, size_t bytes, char *out, size_t out_bytes);

/* True for characters that have an effect and no glyph: controls, direction marks, joiners,
   tags. */
bool utf8_acts(uint32_t code);
#define UTF8_SHOWN_BYTES 16
/* Writes the printable form of the character at text, and its length: the character itself, or an
   escape (\n, \x1b, \u202e) for invalid bytes and for characters that act. Returns the bytes
   read. */
size_t utf8_show(const char *text, size_t bytes, char shown[UTF8_SHOWN_BYTES], size_t *shown_bytes);
/* The printable form of all of text: at most out_bytes - 1 bytes and a NUL, truncated between
   characters. Returns its length. */
size_t utf8_visible(const char *text, size_t bytes, char *out, size_t out_bytes);

#endif
