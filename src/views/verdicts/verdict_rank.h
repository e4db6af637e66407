/*
 * The order of findings: by the time that can be won, a cause before the function that it is in.
 */
#ifndef KYMO_VIEWS_VERDICTS_VERDICT_RANK_H
#define KYMO_VIEWS_VERDICTS_VERDICT_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "views/verdicts/rules.h"

/* The row that a verdict's query returns, in this order; NULL is 0. */
struct finding {
	double won_ns; /* could be saved at most */
	double whole_ns; /* of this */
	char name[128];
	uint64_t count;
	double a, b; /* evidence: times or bytes, see each rule */
	char which[192]; /* a second name, in queries of seven columns */
	char place[576]; /* a frame of the program's own code, of the column place; "": none */
	double place_share; /* of the column place_share; negative: not known */
	double weight; /* of the column weight, instead of the rule's; 0: none */
	char advice[256]; /* of the column advice, instead of the rule's; "": none */
};

/* A verdict that holds. */
struct candidate {
	const struct rules_row *rule;
	struct finding finding;
	double rank;
};

/* Sorts them, the most important one first. steps: the program has steps. */
void verdict_rank(struct candidate *all, size_t count, bool steps);

/* Whether another of them has the same content, and more. */
bool verdict_rank_is_said_better(const struct candidate *one, const struct candidate *all,
				 size_t count);

/* A rank that others wait for in vain: the autopsy of a job, which comes first. */
bool verdict_rank_names_a_rank(const struct rules_row *rule);

#endif
