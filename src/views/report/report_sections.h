/* Sections of the report for a terminal that have a file of their own. */
#ifndef KYMO_VIEWS_REPORT_REPORT_SECTIONS_H
#define KYMO_VIEWS_REPORT_REPORT_SECTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "views/verdicts/facts.h"
#include "views/term/text.h"

#define OPEN_THREADS_SHOWN 16 /* with open zones */

struct report {
	struct tables *tables;
	const struct text_style *style;
	FILE *out;
	bool subtract_overhead;
	bool models_said; /* models were printed first */
	struct facts facts;
	struct kymo_error *err;
};

/* The slowest steps, and what took longer in them. 0, or a negative errno. */
int report_slowest(struct report *report);

#endif
