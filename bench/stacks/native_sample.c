/*
 * What a native sample costs the program: CPU time of the same work with and without perf events,
 * in turn, on a stack of about 32 KB, all of which the kernel copies.
 *
 *	native_sample [PAIRS]
 *
 * A JSON line: ns of CPU time for each sample (the median of the pairs), the samples of a pair, and
 * the share of the program's CPU time at 100 samples a second, in %.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/perf/perf_record.h"

#define PERIOD_NS 100000 /* 10,000 a second: the cost stands out of the noise */
#define STACK_BYTES 32768u
#define WORK 60000000u
#define PAIRS_MOST 101
#define RING_BYTES (512u << 10)

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec now = { 0, 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int open_event(void)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = PERIOD_NS;
	attr.sample_type = perf_record_sample_type();
	attr.sample_regs_user = perf_record_register_mask();
	attr.sample_stack_user = STACK_BYTES;
	attr.disabled = 1;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Frames of 1 KB each, then the work. */
static __attribute__((noinline)) uint64_t work(unsigned depth)
{
	volatile char frame[1024];
	uint64_t began_ns;

	frame[depth] = (char)depth;
	if (depth)
		return work(depth - 1) + (uint64_t)(frame[depth] - (char)depth);
	began_ns = cpu_ns();
	for (unsigned i = 0; i < WORK; i++)
		sink += i;
	return cpu_ns() - began_ns;
}

static int by_value(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

int main(int argc, char **argv)
{
	size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 15, done = 0;
	long page_bytes = sysconf(_SC_PAGESIZE);
	double costs[PAIRS_MOST], samples = 0;
	int fd = open_event();
	void *ring = fd < 0 ? MAP_FAILED
			    : mmap(NULL, (size_t)page_bytes + RING_BYTES, PROT_READ, MAP_SHARED, fd,
				   0); /* not writable: the kernel overwrites the oldest */

	if (ring == MAP_FAILED || !pairs || pairs > PAIRS_MOST) {
		perror("native_sample");
		return 1;
	}
	for (; done < pairs; done++) {
		uint64_t without_ns = work(33), with_ns, events;
		uint64_t before, after;

		ioctl(fd, PERF_EVENT_IOC_RESET, 0);
		before = cpu_ns();
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		with_ns = work(33);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		after = cpu_ns();
		events = (after - before) / PERIOD_NS;
		samples += (double)events;
		costs[done] = ((double)with_ns - (double)without_ns) / (double)events;
	}
	qsort(costs, pairs, sizeof(costs[0]), by_value);
	printf("{\"ns\": %.0f, \"samples\": %.0f, \"share_pct\": %.4f}\n", costs[pairs / 2],
	       samples / (double)pairs, costs[pairs / 2] * 100 / 1e7);
	return 0;
}
