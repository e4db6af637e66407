/* Evaluates the verdicts of a report (rules.h) and ranks them. */
#ifndef KYMO_VIEWS_VERDICTS_VERDICT_H
#define KYMO_VIEWS_VERDICTS_VERDICT_H

#include <stdbool.h>

#include "tables/tables.h"
#include "views/verdicts/facts.h"

struct verdict {
	char name[16]; /* of the rule; "" : nothing stands out */
	double gain; /* share of the time that could be saved at most */
	/* "Data loading holds up training: it takes 16 % of step time (34.5 s of 211 s)." */
	char sentence[512];
	char evidence[512];
	char advice[512]; /* "" : none */
	/* The place in the program's own code: "write_checkpoint", "/home/a/train.py", 31. "": not
	   known; then the others mean nothing. */
	char where_function[160];
	char where_file[400]; /* "": not known */
	int where_line; /* 0: not known */
	double where_share; /* of the time of the finding, 0 to 1; negative: not known */
	const char *view; /* the tab of the HTML report that shows the numbers; "": none */
	char find[128]; /* what to search for there; "": nothing */
	const char *query; /* SQL that gives them; "": none */
};

#define VERDICT_ENDED \
	"ended" /* name of the verdict on a failed program: the first, but for a rank that
				the others wait for */

#define VERDICT_MOST 48 /* more than there are */

/*
 * All verdicts that hold, the one with the largest gain first; at least one. Returns how many. If
 * the program failed, that verdict is the first. tables may be NULL: then from the facts alone.
 */
size_t verdict_all(struct tables *tables, const struct facts *facts, bool utf8, struct verdict *out,
		   size_t room);

#endif
