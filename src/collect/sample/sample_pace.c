#include "collect/sample/sample_pace.h"

/* Shares of a core: 0.5 %, and 10 % in the first second, which is soon over. */
#define PERIODS_PER_COST 200u
#define IDLE_SHARE 800u /* of 1,000 parts of that: not for an idle process */
#define FIRST_PERIODS_PER_COST 10u
#define LEAST_MOST_NS 10000000000ull

bool sample_pace_is_first(const struct sample_pace *pace)
{
	return pace->burst ||
	       (pace->age_ns < SAMPLE_PACE_FIRST_FOR_NS &&
		pace->spent_ns < SAMPLE_PACE_SPENT_NS + pace->run_ns / SAMPLE_PACE_SPENT_PARTS);
}

static uint64_t first_period(const struct sample_pace *pace)
{
	uint64_t by_age_ns = pace->burst ? 0 : pace->age_ns / SAMPLE_PACE_AGE_PARTS;

	return by_age_ns > SAMPLE_PACE_FIRST_NS ? by_age_ns : SAMPLE_PACE_FIRST_NS;
}

uint64_t sample_pace_least(const struct sample_pace *pace)
{
	uint64_t idle = pace->idle_permille < 1000 ? pace->idle_permille : 1000;
	uint64_t times = sample_pace_is_first(pace)
				 ? FIRST_PERIODS_PER_COST
				 : PERIODS_PER_COST * 1000 / (1000 - IDLE_SHARE * idle / 1000);

	return pace->cost_ns > LEAST_MOST_NS / times ? LEAST_MOST_NS : pace->cost_ns * times;
}

static uint64_t wanted_period(const struct sample_pace *pace)
{
	bool first = sample_pace_is_first(pace);
	uint64_t period_ns = first ? first_period(pace) : SAMPLE_PACE_NS;
	uint64_t most_ns = first ? SAMPLE_PACE_NS : SAMPLE_PACE_SLOWEST_NS;
	uint64_t same = first ? SAMPLE_PACE_FIRST_SAME : SAMPLE_PACE_SAME;

	for (uint64_t left = pace->unchanged / same; left && period_ns < most_ns; left--)
		period_ns *= 2;
	return period_ns < most_ns ? period_ns : most_ns;
}

uint64_t sample_pace_next(const struct sample_pace *pace)
{
	uint64_t wanted_ns = wanted_period(pace), least_ns = sample_pace_least(pace);

	if (pace->fixed_ns)
		return pace->fixed_ns;
	return wanted_ns > least_ns ? wanted_ns : least_ns;
}
