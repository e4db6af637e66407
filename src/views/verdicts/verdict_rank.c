#include "views/verdicts/verdict_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAUSE_LEAST 0.2 /* of the share of the function that a cause explains */
#define OTHER_CAUSE_LEAST 0.5 /* the same if the kind of work explains most of it already */
#define BELOW 0.999 /* ranks just below */

static bool rank_is_one_of(const struct rules_row *rule, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rule->name, names[i]))
			return true;
	return false;
}

/* Where the time goes, and not why. */
static bool tells_where(const struct rules_row *rule)
{
	static const char *const names[] = { "function", "region" };

	return rank_is_one_of(rule, names, sizeof(names) / sizeof(names[0]));
}

/* Why a function takes its time. */
static bool tells_why(const struct rules_row *rule)
{
	static const char *const names[] = { "between", "data", "event_loop", "files",	"gc",
					     "gil",	"io",	"lock",	      "pickle", "swap" };

	return rank_is_one_of(rule, names, sizeof(names) / sizeof(names[0]));
}

bool verdict_rank_names_a_rank(const struct rules_row *rule)
{
	return !strcmp(rule->name, "absent") || !strcmp(rule->name, "desync");
}

static double rank_of(const struct candidate *candidate, bool steps)
{
	const struct rules_row *rule = candidate->rule;
	double weight = steps && rule->weight_with_steps > 0 ? rule->weight_with_steps
							     : rule->weight;

	if (verdict_rank_names_a_rank(rule))
		return INFINITY;
	if (candidate->finding.weight > 0)
		weight = candidate->finding.weight;
	return candidate->finding.won_ns * weight;
}

/* Bytes of "function (file", without the line. */
static size_t function_bytes(const char *place)
{
	const char *colon = strrchr(place, ':');

	return colon ? (size_t)(colon - place) : strlen(place);
}

static bool in_one_function(const struct finding *a, const struct finding *b)
{
	size_t bytes = function_bytes(a->place);

	return bytes && bytes == function_bytes(b->place) && !memcmp(a->place, b->place, bytes);
}

static double share_of(const struct finding *finding)
{
	return finding->whole_ns > 0 ? finding->won_ns / finding->whole_ns : 0;
}

/* A function whose kind of work is known has a weight of its own (rules/function.sql). */
static double least_cause(const struct candidate *one)
{
	return one->finding.weight > 0 ? OTHER_CAUSE_LEAST : CAUSE_LEAST;
}

/* Where the reason of a function's time is known, the reason comes first. Shares are compared: on a
   busy machine some causes leave out the time without a core, as part of the run as well. */
static void put_below_causes(struct candidate *one, const struct candidate *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (tells_why(all[i].rule) && in_one_function(&one->finding, &all[i].finding) &&
		    share_of(&all[i].finding) >= least_cause(one) * share_of(&one->finding) &&
		    one->rank > BELOW * all[i].rank)
			one->rank = BELOW * all[i].rank;
}

static int by_gain(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->rank < y->rank   ? 1
	       : x->rank > y->rank ? -1
	       : x->rule < y->rule ? -1
				   : x->rule > y->rule;
}

void verdict_rank(struct candidate *all, size_t count, bool steps)
{
	for (size_t i = 0; i < count; i++)
		all[i].rank = rank_of(&all[i], steps);
	for (size_t i = 0; i < count; i++)
		if (tells_where(all[i].rule))
			put_below_causes(&all[i], all, count);
	if (count)
		qsort(all, count, sizeof(all[0]), by_gain);
}

static const struct candidate *find_candidate(const char *name, const struct candidate *all,
					      size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].rule->name, name))
			return &all[i];
	return NULL;
}

/* A wait for other ranks is the fault of the rank that is late or absent, and one in the function
   that blocks an event loop is the reason why it does. */
bool verdict_rank_is_said_better(const struct candidate *one, const struct candidate *all,
				 size_t count)
{
	const struct candidate *blocked = find_candidate("event_loop", all, count);

	if (strcmp(one->rule->name, "waiting"))
		return false;
	if (blocked && blocked->finding.place[0] &&
	    !strcmp(blocked->finding.place, one->finding.place))
		return true;
	return strstr(one->finding.which, "waits for other ranks") &&
	       (find_candidate("rank", all, count) || find_candidate("absent", all, count));
}
