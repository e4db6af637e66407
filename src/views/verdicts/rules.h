/*
 * The verdicts of a report. Each is a file in rules/: a header with its words and numbers, and a
 * query; tools/embed-sql makes a row of this table from it. verdict.c evaluates them all, and
 * docs/verdicts.md lists them. The rows are in the order of their names, which matters only for
 * verdicts of exactly equal rank: those are printed in this order.
 */
#ifndef KYMO_VIEWS_VERDICTS_RULES_H
#define KYMO_VIEWS_VERDICTS_RULES_H

#include <stddef.h>

#include "base/buf.h"

/*
 * {share} {won} {whole} {name} {count} {a} {b} {which} are filled from the row that the query
 * returns; {a_bytes} {b_bytes} are a and b as bytes, {pid} is b as a plain number, and {s} is the
 * plural s of the word before it unless the count is 1. {run_ns} in a query is the duration of the
 * run, {zones} are the rows of trace.zones, see zones_if. Text in [brackets] is left out if the row
 * has no name.
 */
struct rules_row {
	const char *name;
	double threshold; /* least won_ns / whole_ns */
	/* The part of won_ns that a change to the program usually gains; ranks verdicts. */
	double weight;
	double weight_with_steps; /* the same for a program with steps; 0: as weight */
	double least_s; /* runs shorter than this are not judged; 0: all are */
	const char *needs; /* a table; without rows in it the query is not run. NULL: none */
	/* A query of one number, for recordings with many zones: if it is 0, {zones} are none,
	   because the query would read all of them and find nothing. NULL: they are always read. */
	const char *zones_if;
	/* One row: won_ns, whole_ns, name, count, a, b, and optionally which; see struct finding in
	   verdict.c. After them, by name: place, a frame as in python.samples ("function
	   (file:line)"), and place_share, its part of the finding's time; advice and weight, if
	   they depend on what was found. */
	const char *sql;
	const char *sentence, *evidence, *advice;
	/* The tab of the HTML report that shows it, and searches for the name. "?of=samples" after
	   flame: the flame graph of samples. */
	const char *tab;
	const char *query; /* SQL that shows the same numbers to a person */
};

extern const struct rules_row rules[];
extern const size_t rules_count;

/* The table of docs/verdicts.md. */
void rules_docs(struct buf *out);

#endif
