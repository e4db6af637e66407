/*
 * Text for a terminal: its width, cutting, colours, and escapes for control characters in names
 * from a recording.
 */
#ifndef KYMO_VIEWS_TERM_TEXT_H
#define KYMO_VIEWS_TERM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

struct text_style {
	bool utf8; /* bars and µ; else # and u */
	bool colour;
	bool terminal; /* lines may be cut to fit */
	int columns;
};

/* By the stream (terminal or not, its width), NO_COLOR and the locale. A pipe has 80 columns and no
   colour. */
struct text_style text_style_of(FILE *out);

/* Lines of a terminal; 24 if unknown. */
int text_lines_of(FILE *out);

enum text_paint {
	TEXT_PLAIN,
	TEXT_BOLD,
	TEXT_DIM,
	TEXT_RED,
	TEXT_GREEN,
	TEXT_YELLOW,
	TEXT_BLUE,
	TEXT_MAGENTA,
	TEXT_CLAUSE, /* bold and yellow: the first clause of a verdict */
};

/* Escape codes, or "" without colour. */
const char *text_paint(const struct text_style *style, enum text_paint paint);
const char *text_plain(const struct text_style *style);
/* "c", "python", … in the colour of the source. */
enum text_paint text_source_paint(const char *source);

/* Bytes of the UTF-8 character at text, and its code unless NULL; 0: not a valid character. */
size_t text_character(const char *text, size_t bytes, uint32_t *out);
/* Adds text with control bytes, invalid bytes and direction marks escaped (\n, \x1b, \u202e). A
   text that is escaped twice is the same as one that is escaped once. */
void text_visible(struct buf *out, const char *text, size_t bytes);
/* Prints one line, escaped as a whole, and its newline. tools/check-foreign finds prints of names,
   paths and messages that use neither this nor text_visible(). */
void text_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints text of several lines, each escaped. For a terminal that gets a format for programs. */
void text_lines(FILE *out, const char *text, size_t bytes);
/* Columns of the text as text_visible() writes it. */
size_t text_width(const char *text, size_t bytes);
/* Adds text, cut in the middle ("aten::scaled…attention") if it is wider, padded if it is narrower
   and pad is set: -1 on its right, 1 on its left. */
void text_fit(struct buf *out, const char *text, size_t width, int pad,
	      const struct text_style *style);

/* Adds text unchanged, padded to width: -1 on its right, 1 on its left. Never cuts. */
void text_pad(struct buf *out, const char *text, size_t width, int pad);

/* Words, escaped as by text_visible(), wrapped at the style's columns, each line indented; bold, up
   to the first ": " as a clause if painted. */
void text_paragraph(FILE *out, const char *text, int indent, const char *first_indent, bool painted,
		    const struct text_style *style);
/* Number of lines that text_paragraph() prints. */
int text_paragraph_lines(const char *text, int indent, const struct text_style *style);

/* Shortens a text in its array of room bytes until text_paragraph() prints at most `lines` lines:
   by its last sentences and clauses, then by words, with an ellipsis. */
void text_shorten(char *text, size_t room, int indent, int lines, const struct text_style *style);

/* A bar of at most width columns for a share of 0 to 1, in eighths; # without UTF-8. */
void text_bar(struct buf *out, double share, int width, const struct text_style *style);
/* One column per value: ▁▂▃▄▅▆▇█, or _.-=*# without UTF-8; a blank for a negative value, which
   means no data. */
void text_sparkline(struct buf *out, const double *values, size_t count,
		    const struct text_style *style);

#endif
