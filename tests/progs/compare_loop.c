/*
 * A loop whose work is counted, not timed, for comparisons of real recordings: the CPU decides how
 * long a step takes.
 *
 *	compare_loop STEPS PERCENT	region alpha does PERCENT more work; beta and gamma never do
 */
#include <stdint.h>
#include <stdlib.h>

#include <kymo/kymo.h>

static volatile uint64_t sink;

static void work(long rounds)
{
	uint64_t value = 88172645463325252u;

	for (long i = 0; i < rounds; i++) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	sink = value;
}

static void one_step(double percent)
{
	KYMO_SCOPE("train_step");
	{
		KYMO_SCOPE("alpha");
		work((long)(200000 * (1 + percent / 100)));
	}
	{
		KYMO_SCOPE("beta");
		work(100000);
	}
	{
		KYMO_SCOPE("gamma");
		work(20000);
	}
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 30;
	double percent = argc > 2 ? atof(argv[2]) : 0;

	for (int i = 0; i < steps; i++) {
		kymo_step("step");
		one_step(percent);
	}
	kymo_step_end("step");
	return 0;
}
