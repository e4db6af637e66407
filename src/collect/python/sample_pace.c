#include "collect/python/sample_pace.h"

/* Shares of a core: 1 %, and 10 % in the first second, which is soon over. */
#define PERIODS_PER_COST 100u
#define FIRST_PERIODS_PER_COST 10u
#define LEAST_MOST_NS 10000000000ull

static int is_first(const struct sample_pace *pace)
{
	return pace->age_ns < SAMPLE_PACE_FIRST_FOR_NS;
}

uint64_t sample_pace_least(const struct sample_pace *pace)
{
	uint64_t times = is_first(pace) ? FIRST_PERIODS_PER_COST : PERIODS_PER_COST;

	return pace->cost_ns > LEAST_MOST_NS / times ? LEAST_MOST_NS : pace->cost_ns * times;
}

static uint64_t wanted_period(const struct sample_pace *pace)
{
	uint64_t doublings = pace->unchanged / SAMPLE_PACE_SAME;
	uint64_t period_ns = SAMPLE_PACE_NS;

	if (is_first(pace))
		return SAMPLE_PACE_FIRST_NS;
	for (; doublings && period_ns < SAMPLE_PACE_SLOWEST_NS; doublings--)
		period_ns *= 2;
	return period_ns < SAMPLE_PACE_SLOWEST_NS ? period_ns : SAMPLE_PACE_SLOWEST_NS;
}

uint64_t sample_pace_next(const struct sample_pace *pace)
{
	uint64_t wanted_ns = wanted_period(pace), least_ns = sample_pace_least(pace);

	if (pace->fixed_ns)
		return pace->fixed_ns;
	return wanted_ns > least_ns ? wanted_ns : least_ns;
}
