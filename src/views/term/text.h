/*
 * Text for a terminal: how wide it is, how to cut it, how to paint it, and how to make sure that a
 * name out of a recording cannot drive the terminal.
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
	bool terminal; /* things may be cut to fit */
	int columns;
};

/* What suits this stream: a terminal or not, its width, NO_COLOR, the locale. A pipe: 80 columns,
   no colour. */
struct text_style text_style_of(FILE *out);

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
/* "c", "python", … in its hue. */
enum text_paint text_source_paint(const char *source);

/* Bytes of the UTF-8 character at text and, if wanted, its code; 0 for a byte that begins none. */
size_t text_character(const char *text, size_t bytes, uint32_t *out);
/* Adds text with every control byte, escape, bad byte and direction mark made visible (\n, \x1b,
   \u202e). */
void text_visible(struct buf *out, const char *text, size_t bytes);
/* Columns that the text takes, as text_visible() leaves it. */
size_t text_width(const char *text, size_t bytes);
/* Adds text, cut in the middle ("aten::scaled…attention") if it is wider, padded if it is narrower
   and pad is set: -1 on its right, 1 on its left. */
void text_fit(struct buf *out, const char *text, size_t width, int pad,
	      const struct text_style *style);

/* Adds text as it is, padded to width: -1 on its right, 1 on its left. Never cuts. */
void text_pad(struct buf *out, const char *text, size_t width, int pad);

/* Words wrapped at the style's columns, each line indented; bold, up to the first ": " as a clause
   if painted. */
void text_paragraph(FILE *out, const char *text, int indent, const char *first_indent, bool painted,
		    const struct text_style *style);
/* Lines that text_paragraph() takes. */
int text_paragraph_lines(const char *text, int indent, const struct text_style *style);

/* A bar of at most width columns for a share of 0 to 1, in eighths; a bare # without UTF-8. */
void text_bar(struct buf *out, double share, int width, const struct text_style *style);
/* One column per value: ▁▂▃▄▅▆▇█, or _.-=*# without UTF-8; a blank for a negative one (nothing
   there). */
void text_sparkline(struct buf *out, const double *values, size_t count,
		    const struct text_style *style);

#endif
