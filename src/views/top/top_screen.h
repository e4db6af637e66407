/* Draws a screen of `kymo top`. */
#ifndef KYMO_VIEWS_TOP_TOP_SCREEN_H
#define KYMO_VIEWS_TOP_TOP_SCREEN_H

#include "base/buf.h"
#include "views/term/text.h"
#include "views/top/top_data.h"

enum top_sort { TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_RUNNING, TOP_SORTS };

/* What the keys have chosen. */
struct top_view {
	int lines; /* of the terminal */
	enum top_sort sort;
	bool threads; /* the table of threads alone */
	bool help;
	bool paused;
	bool keys; /* the last line names the keys */
	int scroll; /* rows of the table that are above its first line */
	char note[160]; /* instead of the keys: an error; "": none */
};

/* Adds at most view->lines lines, each at most style->columns wide and ended by \n. Sorts the
   places of data, and limits view->scroll. */
void top_screen_draw(struct buf *out, struct top_data *data, struct top_view *view,
		     const struct text_style *style);

#endif
