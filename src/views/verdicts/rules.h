/*
 * What a report looks for: rows of one table, so that the next one is one row. verdict.c asks each
 * of them and says what holds; docs/verdicts.md is made of them.
 */
#ifndef KYMO_VIEWS_VERDICTS_RULES_H
#define KYMO_VIEWS_VERDICTS_RULES_H

#include <stddef.h>

#include "base/buf.h"

/*
 * {share} {won} {whole} {name} {count} {a} {b} {which} are filled from what the query answers,
 * {a_bytes} {b_bytes} as bytes, {pid} is b as a plain number, {s} makes a plural of the word before
 * it unless the count is 1; {run_ns} in a query is the run's length. [Brackets] hold what is said
 * only where there is a name.
 */
struct rules_row {
	const char *name;
	double threshold; /* least won_ns / whole_ns */
	/* The part of won_ns that changing the program usually brings; ranks verdicts against each
	   other. */
	double gain;
	double least_s; /* shorter runs are not judged by it */
	/* One row: won_ns, whole_ns, name, count, a, b, and which where it is said; see struct
	   finding in verdict.c. */
	const char *sql;
	const char *sentence, *evidence, *advice;
	/* The tab of the HTML report that shows it ("?of=samples" behind flame: of those); there
	   the name is looked for. */
	const char *view;
	const char *query; /* what a person asks to see the same numbers */
};

extern const struct rules_row rules[];
extern const size_t rules_count;

/* The table of docs/verdicts.md. */
void rules_docs(struct buf *out);

#endif
