/*
 * The smallest use of kymo: zones, a mark, a counter, steps.
 *
 *	kymo run -- build/examples/hello
 *	kymo query "SELECT name, count, total_ns FROM trace.regions"
 */
#include <stdio.h>

#include <kymo/kymo.h>

static double work(int rounds)
{
	KYMO_SCOPE("work"); /* ends with the block */
	double sum = 0;

	for (int i = 1; i <= rounds; i++)
		sum += 1.0 / ((double)i * i);
	return sum;
}

int main(void)
{
	double sum = 0;

	kymo_mark("hello", "the loop begins");
	for (int i = 0; i < 100; i++) {
		kymo_step(NULL);
		sum = work(1000 * (i + 1));
		kymo_counter("sum", sum);
	}
	kymo_step_end(NULL);
	printf("%.4f\n", sum);
	return 0;
}
