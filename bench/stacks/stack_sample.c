/*
 * Samples the Python stacks of a process as fast as it can, or with a pause between samples, and
 * says what that cost.
 *
 *	stack_sample PID COUNT [PAUSE_US] [folded]
 *
 * One JSON line; with "folded", before it each different stack and how often it was seen.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "collect/python/pystack.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

struct seen {
	char *text;
	uint64_t count;
};
static struct seen seen[1u << 16];

static void count_stack(const char *text)
{
	uint64_t hash = 1469598103934665603ull;

	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	while (seen[hash & 0xffff].text && strcmp(seen[hash & 0xffff].text, text) != 0)
		hash++;
	if (!seen[hash & 0xffff].text)
		seen[hash & 0xffff].text = strdup(text);
	seen[hash & 0xffff].count++;
}

static void fold(const struct pystack *stack)
{
	struct buf line = { 0 };

	for (size_t i = 0; i < stack->thread_count; i++) {
		const struct pystack_thread *thread = &stack->threads[i];

		buf_reset(&line);
		for (size_t k = thread->frame_count; k-- > 0;)
			buf_print(&line, "%s:%d%s", thread->frames[k].code->name,
				  thread->frames[k].line, k ? ";" : "");
		if (thread->read)
			count_stack(buf_get(&line));
	}
	buf_fini(&line);
}

int main(int argc, char **argv)
{
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t pause_us = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	bool folded = argc > 4 && !strcmp(argv[4], "folded");
	uint64_t *took = calloc(count + 1, sizeof(*took)), cpu_ns, frames = 0;
	struct kymo_error err = { 0 };
	struct pystack stack;
	size_t done = 0;
	int rc = 0;

	if (!count || !took || pystack_open(&stack, (pid_t)strtol(argv[1], NULL, 10), &err)) {
		fprintf(stderr, "stack_sample: %s\n",
			err.text[0] ? err.text : "PID COUNT [PAUSE_US] [folded]");
		return 1;
	}
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (; done < count; done++) {
		uint64_t began = now_ns(CLOCK_MONOTONIC);

		rc = pystack_read(&stack, &err);
		if (rc == -ESRCH)
			break;
		took[done] = now_ns(CLOCK_MONOTONIC) - began;
		for (size_t i = 0; !rc && i < stack.thread_count; i++)
			frames += stack.threads[i].frame_count;
		if (!rc && folded)
			fold(&stack);
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	qsort(took, done, sizeof(*took), compare);
	for (size_t i = 0; i < 0x10000; i++)
		if (seen[i].text)
			printf("%" PRIu64 " %s\n", seen[i].count, seen[i].text);
	printf("{\"samples\": %zu, \"accepted\": %" PRIu64 ", \"missed\": %" PRIu64
	       ", \"again\": %" PRIu64 ", \"frames\": %" PRIu64 ", \"p50_ns\": %" PRIu64
	       ", \"p99_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 ", \"calls\": %" PRIu64 "}\n",
	       done, stack.stats.threads, stack.stats.missed, stack.stats.again, frames,
	       took[done / 2], took[done * 99 / 100], done ? cpu_ns / done : 0, stack.stats.calls);
	pystack_close(&stack);
	return 0;
}
