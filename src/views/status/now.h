/* What a running program is doing: its open zones and the age of its last row. */
#ifndef KYMO_VIEWS_STATUS_NOW_H
#define KYMO_VIEWS_STATUS_NOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "store/store.h"
#include "views/term/text.h"

struct now {
	bool known;
	bool from_outside; /* libkymo is not loaded in it */
	int64_t last_row_age_ns; /* -1: no row */
	char longest[256]; /* the zone open for the longest time; "": none */
	int64_t longest_age_ns;
	char innermost[256]; /* of the same thread, if different; "": none */
	int64_t innermost_age_ns;
};

void now_look(const struct recording *recording, struct now *out);
/* "  in train for 2 h > data.next for 41 s; last row 41 s ago", cut to one line. */
void now_print(const struct now *now, const struct text_style *style, FILE *out);

#endif
