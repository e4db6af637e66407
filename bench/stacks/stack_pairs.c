/*
 * Windows of time in which the stacks of a process are sampled, and as many beside them in which
 * they are not, in turn and in an order that is drawn for each pair.
 *
 *	stack_pairs PID PERIOD_US WINDOW_US PAIRS
 *
 * A line for each window: the pair, 1 where it was sampled, its begin and end (CLOCK_MONOTONIC,
 * ns), and the samples. A window that is not sampled is slept through.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collect/host/proc.h"
#include "collect/python/pystack.h"

static uint64_t now_ns(void)
{
	struct timespec now = { 0, 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

/* What the sampler of kymo run does to the process for a sample: reads its stacks, and the state of
   each thread. */
static void sample(struct pystack *stack)
{
	char path[64], text[512];

	if (pystack_read(stack, NULL))
		return;
	for (size_t i = 0; i < stack->thread_count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)stack->pid,
			 (int)stack->threads[i].tid);
		proc_read(path, text, sizeof(text));
	}
}

static void window(struct pystack *stack, size_t pair, bool sampled, uint64_t period_ns,
		   uint64_t window_ns)
{
	uint64_t began_ns = now_ns();
	unsigned count = 0;

	for (uint64_t at_ns = began_ns; sampled && at_ns - began_ns < window_ns;
	     at_ns += period_ns, count++) {
		sleep_until(at_ns);
		sample(stack);
	}
	sleep_until(began_ns + window_ns);
	printf("%zu %d %" PRIu64 " %" PRIu64 " %u\n", pair, sampled, began_ns, now_ns(), count);
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 5 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	uint64_t period_ns = argc == 5 ? 1000 * strtoull(argv[2], NULL, 10) : 0;
	uint64_t window_ns = argc == 5 ? 1000 * strtoull(argv[3], NULL, 10) : 0;
	size_t pairs = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	struct kymo_error err = { 0 };
	struct pystack stack;

	if (!pid || !period_ns || !window_ns || pystack_open(&stack, pid, &err)) {
		fprintf(stderr, "stack_pairs: %s\n",
			err.text[0] ? err.text : "PID PERIOD_US WINDOW_US PAIRS");
		return 1;
	}
	srandom((unsigned)pid);
	sample(&stack); /* what it remembers of the process is there */
	for (size_t i = 0; i < pairs; i++) {
		bool first = random() & 1;

		window(&stack, i, first, period_ns, window_ns);
		window(&stack, i, !first, period_ns, window_ns);
	}
	pystack_close(&stack);
	return 0;
}
