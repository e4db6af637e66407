/* The sentence that says where the time goes. Verdicts are rows of one table (verdict.c). */
#ifndef KYMO_VIEWS_VERDICTS_VERDICT_H
#define KYMO_VIEWS_VERDICTS_VERDICT_H

#include <stdbool.h>

#include "tables/tables.h"
#include "views/verdicts/facts.h"

struct verdict {
	char name[16]; /* of the rule; "" : nothing stands out */
	double gain; /* share of the time looked at that could be won at most */
	char sentence
		[512]; /* "Data loading holds up training: it takes 16 % of step time (34.5 s of 211 s)." */
	char evidence[512];
	char advice[512]; /* "" : none */
	const char *view; /* the tab of the HTML report that shows its numbers; "": none */
	char find[128]; /* what to look for there; "": nothing */
	const char *query; /* SQL that gives them; "": none */
};

#define VERDICT_ENDED \
	"ended" /* the name of one that says how the program failed: always the first */

#define VERDICT_MOST 32 /* more than there are */

/*
 * All that hold, the one by which most could be won first; at least one. Says how many. A program
 * that failed says so first. tables may be NULL: then by the facts alone.
 */
size_t verdict_all(struct tables *tables, const struct facts *facts, bool utf8, struct verdict *out,
		   size_t room);

#endif
