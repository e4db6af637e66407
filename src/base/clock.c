#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

uint64_t (*kymo__slow_clock)(void);

static uint64_t base_clock_read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return base_clock_read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return base_clock_read_clock(CLOCK_REALTIME);
}

#if defined(__x86_64__) || defined(__i386__)
static int cpu_counter_is_invariant(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

/* A kernel that found the TSC unreliable uses one of these itself. */
static int kernel_distrusts_counter(void)
{
	char word[16] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t bytes;

	if (fd < 0)
		return 0;
	bytes = read(fd, word, sizeof(word) - 1);
	close(fd);
	return bytes > 0 && (!strncmp(word, "hpet", 4) || !strncmp(word, "acpi_pm", 7) ||
			     !strncmp(word, "jiffies", 7));
}
#endif

enum kymo_clock_kind clock_init(void)
{
	const char *wish = secure_getenv("KYMO_CLOCK");

	kymo__slow_clock = NULL;
	if (wish && !strcmp(wish, "monotonic")) {
		kymo__slow_clock = clock_monotonic_ns;
		return KYMO_CLOCK_MONOTONIC;
	}
#if defined(__x86_64__) || defined(__i386__)
	if (cpu_counter_is_invariant() && !kernel_distrusts_counter())
		return KYMO_CLOCK_TSC;
	kymo__slow_clock = clock_monotonic_ns;
#elif defined(__aarch64__)
	return KYMO_CLOCK_CNTVCT;
#endif
	return KYMO_CLOCK_MONOTONIC;
}

void clock_take_pair(struct kymo_clock_pair *out)
{
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = clock_monotonic_ns();
		uint64_t ticks = kymo__ticks();
		uint64_t after = clock_monotonic_ns();
		uint64_t wall = clock_realtime_ns();

		if (after - before >= best_width)
			continue;
		best_width = after - before;
		out->ticks = ticks;
		out->monotonic_ns = before + best_width / 2;
		out->realtime_ns = wall - (after - out->monotonic_ns);
		out->error_ns = best_width / 2 + 1;
	}
}
