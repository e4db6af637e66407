/* A loop of steps for tests of triggers: trigger_loop STEPS MS [SLOW-STEP SLOW-MS [STORM-STEP]].
   In the step of the storm it records 10,000 marks. A line on stdout after each step. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <kymo/kymo.h>

static int word(char **argv, int argc, int at, int fallback)
{
	return argc > at ? atoi(argv[at]) : fallback;
}

int main(int argc, char **argv)
{
	int steps = word(argv, argc, 1, 10), ms = word(argv, argc, 2, 10);
	int slow = word(argv, argc, 3, -1), slow_ms = word(argv, argc, 4, 0);
	int storm = word(argv, argc, 5, -1);

	for (int i = 1; i <= steps; i++) {
		kymo_step("loop");
		usleep((useconds_t)(i == slow ? slow_ms : ms) * 1000);
		for (int k = 0; i == storm && k < 10000; k++)
			kymo_mark("storm", "");
		kymo_counter("loss", i == slow ? (double)__builtin_nanf("") : 1.0);
		kymo_step_end("loop");
		printf("%d\n", i);
		fflush(stdout);
	}
}
