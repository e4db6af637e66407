#include "collect/run/governor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ull
#define AIM 0.9 /* of the budget */
#define ROOM 0.8 /* detail is raised if all then costs less */
#define MEAN_NS (5 * SECOND_NS) /* over which costs are averaged */
#define START_NS (3 * SECOND_NS) /* a program's first seconds are sampled more often */
#define LOWER_EVERY_NS (5 * SECOND_NS) /* the mean has followed */
#define HURRY 2.0 /* over the budget by this factor: at every look */
#define LIMIT_EVERY_NS (5 * SECOND_NS)
#define LIMIT_CHANGE 0.1 /* smaller changes of python_limit are not made */
#define LIMIT_LEAST 0.02 /* of the budget */
#define PRESSED 0.7 /* of its limit: calls would use more */
#define RAISE_LEAST_NS (60 * SECOND_NS)
#define RAISE_MOST_NS (3600 * SECOND_NS)
#define FAILED_NS (300 * SECOND_NS) /* lowered again within this time: raised too early */
#define MATTERS 0.05 /* of the budget: what costs less is not lowered */
#define FORGET_NS (600 * SECOND_NS) /* what a rung has cost may be half as much by now */

const unsigned governor_levels[GOVERNOR_RUNGS] = { 1, 3, 3, 3 };

void governor_init(struct governor *governor, double budget)
{
	memset(governor, 0, sizeof(*governor));
	governor->budget = budget;
	governor->python_limit = (uint32_t)(budget * AIM / 2 * 1e6);
	governor->wait_ns = RAISE_LEAST_NS;
	governor->last_raised = governor->fresh = -1;
}

static double costs_but_calls(const struct governor_costs *costs)
{
	double sum = costs->rest;

	for (int i = 0; i < GOVERNOR_RUNGS; i++)
		sum += costs->rung[i];
	return sum;
}

double governor_sum(const struct governor_costs *costs)
{
	return costs_but_calls(costs) + costs->python;
}

static void follow(double *mean, double now, double weight)
{
	*mean += (now - *mean) * weight;
}

static void take_costs(struct governor *governor, const struct governor_costs *costs,
		       uint64_t past_ns)
{
	double weight = governor->age_ns > START_NS ? 1 - exp(-(double)past_ns / (double)MEAN_NS)
						    : 1;

	follow(&governor->mean.python, costs->python, weight);
	follow(&governor->mean.rest, costs->rest, weight);
	for (int i = 0; i < GOVERNOR_RUNGS; i++)
		follow(&governor->mean.rung[i], costs->rung[i], i == governor->fresh ? 1 : weight);
	governor->fresh = -1;
	governor->age_ns += past_ns;
	governor->limit_ns += past_ns;
	governor->lowered_ns += past_ns;
	governor->raised_ns += past_ns;
}

/* ---- Python calls ---- */

static bool set_limit(struct governor *governor)
{
	double least = governor->budget * LIMIT_LEAST;
	double left = governor->budget * AIM - costs_but_calls(&governor->mean);
	double now = governor->python_limit / 1e6;

	left = left > least ? left : least;
	if (governor->limit_ns < LIMIT_EVERY_NS || fabs(left - now) < now * LIMIT_CHANGE)
		return false;
	governor->limit_ns = 0;
	governor->python_limit = (uint32_t)(left * 1e6);
	return true;
}

static bool is_pressed(const struct governor *governor)
{
	double limit = governor->python_limit / 1e6;

	return governor->mean.python > limit * PRESSED && limit < governor->budget * AIM / 2;
}

/* ---- lowering ---- */

static int find_lower(const struct governor *governor)
{
	for (int i = 0; i < GOVERNOR_RUNGS; i++)
		if (governor->level[i] < governor_levels[i] &&
		    governor->mean.rung[i] >= governor->budget * MATTERS)
			return i;
	return -1;
}

static bool must_lower(const struct governor *governor, const struct governor_costs *now)
{
	double sum = governor_sum(&governor->mean);

	/* Both: a single second over the budget is none, nor is one that is over already. */
	if (costs_but_calls(now) + now->python > governor->budget * HURRY &&
	    sum > governor->budget * HURRY)
		return true;
	return governor->lowered_ns >= LOWER_EVERY_NS &&
	       (sum > governor->budget || is_pressed(governor));
}

static void governor_lower(struct governor *governor, int rung, struct governor_change *out)
{
	if (rung == governor->last_raised && governor->raised_ns < FAILED_NS) {
		governor->wait_ns *= 2;
		if (governor->wait_ns > RAISE_MOST_NS)
			governor->wait_ns = RAISE_MOST_NS;
		governor->last_raised = -1;
	}
	governor->before[rung] = governor->mean.rung[rung];
	governor->lowered_ns = governor->room_ns = 0;
	out->rung = rung;
	governor->fresh = rung;
	out->level = ++governor->level[rung];
}

/* ---- raising ---- */

static int find_raise(const struct governor *governor)
{
	for (int i = GOVERNOR_RUNGS; i-- > 0;)
		if (governor->level[i])
			return i;
	return -1;
}

static bool has_room(const struct governor *governor, int rung)
{
	double forgotten = exp2(-(double)governor->lowered_ns / (double)FORGET_NS);
	double more = governor->before[rung] * forgotten - governor->mean.rung[rung];

	return governor_sum(&governor->mean) + (more > 0 ? more : 0) < governor->budget * ROOM;
}

static void governor_raise(struct governor *governor, uint64_t past_ns, struct governor_change *out)
{
	int rung = find_raise(governor);

	if (rung < 0 || !has_room(governor, rung)) {
		governor->room_ns = 0;
		return;
	}
	governor->room_ns += past_ns;
	if (governor->room_ns < governor->wait_ns)
		return;
	/* A raise that held: the next one need not wait as long. */
	if (governor->last_raised >= 0 && governor->wait_ns > RAISE_LEAST_NS)
		governor->wait_ns /= 2;
	governor->room_ns = governor->raised_ns = 0;
	governor->last_raised = rung;
	out->rung = rung;
	governor->fresh = rung;
	out->level = --governor->level[rung];
}

void governor_next(struct governor *governor, const struct governor_costs *costs, uint64_t past_ns,
		   struct governor_change *out)
{
	bool over;

	*out = (struct governor_change){ .rung = -1 };
	take_costs(governor, costs, past_ns);
	if (governor->age_ns < START_NS)
		return;
	over = must_lower(governor, costs);
	if (over && find_lower(governor) >= 0)
		governor_lower(governor, find_lower(governor), out);
	else if (!over)
		governor_raise(governor, past_ns, out);
	over = over && out->rung < 0 && governor_sum(&governor->mean) > governor->budget;
	out->exceeded = over && !governor->exceeded;
	governor->exceeded = over || (governor->exceeded &&
				      governor_sum(&governor->mean) > governor->budget * AIM);
	out->limit = set_limit(governor);
}

bool governor_parse(const char *text, double *out_budget)
{
	char *end;
	double value;

	if (!*text || strspn(text, "0123456789.") == 0)
		return false;
	value = strtod(text, &end);
	end += strspn(end, " ");
	if (!strcmp(end, "%"))
		value /= 100;
	else if (*end)
		return false;
	*out_budget = value;
	return value >= 0.0005 && value <= 1;
}
