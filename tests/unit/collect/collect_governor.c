/* The budget for overhead: what is lowered and raised, over simulated days. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "collect/run/governor.h"
#include "record/adapter.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* ---- a program that is simulated ---- */

/* Shares of the time with all detail. */
struct load {
	double native, samples, ops, torch, calls, rest;
};

struct simulation {
	struct governor governor;
	struct kymo__windows windows;
	uint64_t now_ns;
	uint64_t told_ns, next_ns; /* of the last look at the windows, and of the next one */
	double call_ns; /* cost of calls since the last one */
	unsigned changes, limits; /* of rungs, of python_limit */
};

static double lowered(double share, unsigned level, unsigned most, double factor)
{
	for (unsigned i = 0; i < level; i++)
		share /= factor;
	return level == most ? 0 : share;
}

static struct governor_costs costs_of(const struct simulation *simulation, const struct load *load)
{
	const unsigned *level = simulation->governor.level;
	struct governor_costs costs = { .rest = load->rest };

	costs.rung[GOVERNOR_NATIVE] = level[GOVERNOR_NATIVE] ? 0 : load->native;
	costs.rung[GOVERNOR_SAMPLES] = lowered(load->samples, level[GOVERNOR_SAMPLES], 3, 10);
	costs.rung[GOVERNOR_OPS] = lowered(load->ops, level[GOVERNOR_OPS], 3, 4);
	costs.rung[GOVERNOR_TORCH] = lowered(load->torch, level[GOVERNOR_TORCH], 4, 4);
	return costs;
}

/* The windows of the program; a window that is open at the end goes on in the next second. */
static double calls_in_second(struct simulation *simulation, double share)
{
	uint64_t end_ns = simulation->now_ns + SECOND, until_ns;
	double cost_ns = 0, cost;

	while (simulation->now_ns < end_ns) {
		until_ns = simulation->next_ns < end_ns ? simulation->next_ns : end_ns;
		cost = simulation->windows.open ? share * (double)(until_ns - simulation->now_ns)
						: 0;
		cost_ns += cost;
		simulation->call_ns += cost;
		simulation->now_ns = until_ns;
		if (until_ns < simulation->next_ns)
			break;
		simulation->next_ns += kymo__windows_next(
			&simulation->windows, until_ns - simulation->told_ns,
			(uint64_t)simulation->call_ns, simulation->governor.python_limit);
		simulation->told_ns = until_ns;
		simulation->call_ns = 0;
	}
	return cost_ns / (double)SECOND;
}

/* Returns the overhead of this second. */
static double live_a_second(struct simulation *simulation, const struct load *load)
{
	struct governor_costs costs = costs_of(simulation, load);
	struct governor_change change;

	costs.python = calls_in_second(simulation, load->calls);
	governor_next(&simulation->governor, &costs, SECOND, &change);
	simulation->changes += change.rung >= 0;
	simulation->limits += change.limit;
	return governor_sum(&costs);
}

static void begin(struct simulation *simulation, double budget)
{
	memset(simulation, 0, sizeof(*simulation));
	governor_init(&simulation->governor, budget);
	simulation->windows.period_ns = SECOND;
	simulation->windows.open = true;
	simulation->next_ns = 5 * MS;
}

static double mean_of(struct simulation *simulation, const struct load *load, int seconds)
{
	double sum = 0;

	for (int i = 0; i < seconds; i++)
		sum += live_a_second(simulation, load);
	return sum / seconds;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* ---- days ---- */

/* Loads change by a factor of 100, now and then at once. */
static void change_load(struct load *load, uint64_t *random)
{
	static const double factors[] = { 0.01, 0.03, 0.1, 0.3, 1 };
	double factor = factors[next_random(random) % 5];

	*load = (struct load){
		.native = 0.002 * factors[next_random(random) % 5],
		.samples = 0.005 * factors[next_random(random) % 5],
		.ops = 0.03 * factors[next_random(random) % 5],
		.torch = 0.02 * factor,
		.calls = 0.7 * factors[next_random(random) % 5],
		.rest = 0.002 * factor,
	};
}

static void test_a_day_is_within_the_budget_in_99_of_100_minutes(void **state)
{
	struct simulation simulation;
	struct load load;
	uint64_t random = 42, over = 0;
	double day = 0;

	(void)state;
	begin(&simulation, 0.01);
	change_load(&load, &random);
	for (int minute = 0; minute < 1440; minute++) {
		double mean;

		if (next_random(&random) % 15 == 0)
			change_load(&load, &random);
		mean = mean_of(&simulation, &load, 60);
		over += mean > 0.01;
		day += mean / 1440;
	}
	assert_true(over <= 14);
	assert_true(day < 0.01);
	/* Detail is not given away: most of the budget is used. */
	assert_true(day > 0.004);
	/* A change is a row: some per change of the load, not one a second. */
	assert_in_range(simulation.changes, 50, 1500);
	assert_in_range(simulation.limits, 50, 3000);
}

static void test_a_loop_of_calls_alone_takes_nine_tenths_of_the_budget(void **state)
{
	const struct load load = { .calls = 0.65, .rest = 0.001, .samples = 0.005 };
	struct simulation simulation;
	double mean;

	(void)state;
	begin(&simulation, 0.01);
	mean_of(&simulation, &load, 120);
	mean = mean_of(&simulation, &load, 600);
	assert_true(mean > 0.008 && mean < 0.01);
	/* Samples went down first: calls have more than half. */
	assert_true(simulation.governor.level[GOVERNOR_SAMPLES] > 0);
	assert_true(simulation.governor.python_limit > 4500);
}

static void test_detail_is_lowered_in_order_and_raised_in_the_opposite_one(void **state)
{
	const struct load heavy = { .native = 0.02, .samples = 0.3, .ops = 0.4, .torch = 0.3 };
	const struct load light = { .native = 2e-5, .samples = 3e-5, .ops = 4e-5, .torch = 3e-5 };
	struct simulation simulation;
	unsigned *level = simulation.governor.level;
	unsigned before[GOVERNOR_RUNGS];

	(void)state;
	begin(&simulation, 0.01);
	for (int second = 0; second < 300; second++) {
		memcpy(before, level, sizeof(before));
		live_a_second(&simulation, &heavy);
		for (int i = 1; i < GOVERNOR_RUNGS; i++)
			if (level[i] > before[i])
				assert_int_equal(level[i - 1], governor_levels[i - 1]);
	}
	assert_int_equal(level[GOVERNOR_TORCH], 3);
	for (int second = 0; second < 20000; second++) {
		memcpy(before, level, sizeof(before));
		live_a_second(&simulation, &light);
		for (int i = 0; i + 1 < GOVERNOR_RUNGS; i++)
			if (level[i] < before[i])
				assert_int_equal(level[i + 1], 0);
	}
	for (int i = 0; i < GOVERNOR_RUNGS; i++)
		assert_int_equal(level[i], 0);
}

static void test_what_does_not_cost_is_not_lowered(void **state)
{
	const struct load load = { .native = 1e-4, .samples = 1e-4, .torch = 0.1 };
	struct simulation simulation;

	(void)state;
	begin(&simulation, 0.01);
	mean_of(&simulation, &load, 300);
	assert_int_equal(simulation.governor.level[GOVERNOR_NATIVE], 0);
	assert_int_equal(simulation.governor.level[GOVERNOR_SAMPLES], 0);
	assert_int_equal(simulation.governor.level[GOVERNOR_TORCH], 2);
}

/* Raised after a minute, lowered again: the next attempt comes later, up to an hour. */
static void test_a_load_at_the_edge_does_not_swing(void **state)
{
	const struct load load = { .torch = 0.011 };
	struct simulation simulation;

	(void)state;
	begin(&simulation, 0.01);
	for (int hour = 0; hour < 24; hour++)
		mean_of(&simulation, &load, 3600);
	assert_in_range(simulation.changes, 1, 60);
}

static void test_zones_alone_are_reported_once_and_not_lowered(void **state)
{
	struct governor governor;
	const struct governor_costs costs = { .rest = 0.3 };
	struct governor_change change;
	unsigned told = 0;

	(void)state;
	governor_init(&governor, 0.01);
	for (int second = 0; second < 3600; second++) {
		governor_next(&governor, &costs, SECOND, &change);
		assert_int_equal(change.rung, -1);
		told += change.exceeded;
	}
	assert_int_equal(told, 1);
}

/* ---- windows ---- */

static void test_a_burst_is_paid_back_before_the_next_window(void **state)
{
	struct kymo__windows windows = { .period_ns = SECOND, .open = true };

	(void)state;
	/* 100 ms in which recording took 70 ms, at 1 %: 6.9 s of pause, looked at each second */
	assert_int_equal(kymo__windows_next(&windows, 100 * MS, 70 * MS, 10000), SECOND);
	assert_false(windows.open);
	for (int second = 0; second < 5; second++) {
		assert_int_equal(kymo__windows_next(&windows, SECOND, 0, 10000), SECOND);
		assert_false(windows.open);
	}
	assert_int_equal(kymo__windows_next(&windows, SECOND, 0, 10000), 900 * MS);
	assert_false(windows.open);
	/* 10 ms of a second, at 70 %: 14 ms */
	assert_in_range(kymo__windows_next(&windows, 900 * MS, 0, 10000), 14 * MS, 15 * MS);
	assert_true(windows.open);
}

static void test_calls_that_cost_less_than_the_limit_are_all_recorded(void **state)
{
	struct kymo__windows windows = { .period_ns = SECOND, .open = true };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		kymo__windows_next(&windows, 100 * MS, MS / 2, 10000);
		assert_true(windows.open);
	}
}

static void test_without_a_limit_the_window_stays_open(void **state)
{
	struct kymo__windows windows = { .period_ns = SECOND };

	(void)state;
	assert_int_equal(kymo__windows_next(&windows, SECOND, SECOND, 0), SECOND);
	assert_true(windows.open);
	assert_int_equal(windows.debt_ns, 0);
}

static void test_budgets_are_shares_from_a_2000th_to_all(void **state)
{
	static const struct {
		const char *text;
		double budget; /* 0: refused */
	} cases[] = {
		{ "1%", 0.01 }, { "1 %", 0.01 }, { "0.5%", 0.005 }, { "0.01", 0.01 },
		{ "100%", 1 },	{ "", 0 },	 { "0%", 0 },	    { "0.01%", 0 },
		{ "101%", 0 },	{ "-1%", 0 },	 { "1%%", 0 },	    { "much", 0 },
		{ "nan", 0 },	{ "inf%", 0 },	 { "1e-2", 0.01 },
	};
	double budget;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(governor_parse(cases[i].text, &budget), cases[i].budget > 0);
		if (cases[i].budget > 0)
			assert_true(budget > cases[i].budget * 0.999 &&
				    budget < cases[i].budget * 1.001);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_day_is_within_the_budget_in_99_of_100_minutes),
		cmocka_unit_test(test_a_loop_of_calls_alone_takes_nine_tenths_of_the_budget),
		cmocka_unit_test(test_detail_is_lowered_in_order_and_raised_in_the_opposite_one),
		cmocka_unit_test(test_what_does_not_cost_is_not_lowered),
		cmocka_unit_test(test_a_load_at_the_edge_does_not_swing),
		cmocka_unit_test(test_zones_alone_are_reported_once_and_not_lowered),
		cmocka_unit_test(test_a_burst_is_paid_back_before_the_next_window),
		cmocka_unit_test(test_calls_that_cost_less_than_the_limit_are_all_recorded),
		cmocka_unit_test(test_without_a_limit_the_window_stays_open),
		cmocka_unit_test(test_budgets_are_shares_from_a_2000th_to_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
