#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define SLOWEST_HZ 100000u
#define FASTEST_HZ 100000000000u

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

/* ---- time namespaces --------------------------------------------------------------------- */

/* Of this process; they cannot change, but a child may be in another namespace. */
static struct {
	pid_t pid;
	int64_t monotonic_ns, boottime_ns;
} offsets;

/* "monotonic -3 500000000" is 2.5 s back. */
static int64_t offset_in(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	char *rest;
	int64_t seconds;

	if (!at)
		return 0;
	seconds = strtoll(at + strlen(name), &rest, 10);
	if (seconds > INT32_MAX || seconds < INT32_MIN)
		return 0;
	return seconds * 1000000000 + strtol(rest, NULL, 10);
}

/* The file describes the namespace of children, which may be another one. */
static int is_own_namespace(void)
{
	char own[32] = "", children[32] = "";

	return readlink("/proc/self/ns/time", own, sizeof(own) - 1) > 0 &&
	       readlink("/proc/self/ns/time_for_children", children, sizeof(children) - 1) > 0 &&
	       !strcmp(own, children);
}

static void load_offsets(void)
{
	const pid_t pid = getpid();
	char text[160] = "";
	int fd;

	if (offsets.pid == pid)
		return;
	fd = is_own_namespace() ? open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	offsets.monotonic_ns = offset_in(text, "monotonic");
	offsets.boottime_ns = offset_in(text, "boottime");
	offsets.pid = pid;
}

uint64_t clock_shared_ns(void)
{
	load_offsets();
	return clock_monotonic_ns() - (uint64_t)offsets.monotonic_ns;
}

uint64_t clock_shared_starttime(uint64_t starttime)
{
	long per_second = sysconf(_SC_CLK_TCK);

	load_offsets();
	if (!starttime || !offsets.boottime_ns || per_second <= 0)
		return starttime;
	return starttime - (uint64_t)(offsets.boottime_ns / (1000000000 / per_second));
}

/* ---- the counter ------------------------------------------------------------------------- */

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

/* clock_shared_ns() without its check: a fork takes a pair before its first row. */
static uint64_t slow_ticks(void)
{
	return clock_monotonic_ns() - (uint64_t)offsets.monotonic_ns;
}

enum kymo_clock_kind clock_init(void)
{
	const char *wish = secure_getenv("KYMO_CLOCK");

	load_offsets();
	kymo__slow_clock = NULL;
	if (wish && !strcmp(wish, "monotonic")) {
		kymo__slow_clock = slow_ticks;
		return KYMO_CLOCK_MONOTONIC;
	}
#if defined(__x86_64__) || defined(__i386__)
	if (cpu_counter_is_invariant() && !kernel_distrusts_counter())
		return KYMO_CLOCK_TSC;
	kymo__slow_clock = slow_ticks;
#elif defined(__aarch64__)
	return KYMO_CLOCK_CNTVCT;
#endif
	return KYMO_CLOCK_MONOTONIC;
}

void clock_take_pair(struct kymo_clock_pair *out)
{
	uint64_t best_width = UINT64_MAX;

	load_offsets();
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
	out->monotonic_ns -= (uint64_t)offsets.monotonic_ns;
}

bool clock_rate_between(const struct kymo_clock_pair *first, const struct kymo_clock_pair *last,
			struct clock_rate *out)
{
	uint64_t ticks, ns;
	unsigned __int128 mult;

	if (last->ticks <= first->ticks || last->monotonic_ns <= first->monotonic_ns)
		return false;
	ticks = last->ticks - first->ticks;
	ns = last->monotonic_ns - first->monotonic_ns;
	if ((unsigned __int128)ticks * 1000000000u < (unsigned __int128)ns * SLOWEST_HZ ||
	    (unsigned __int128)ticks * 1000000000u > (unsigned __int128)ns * FASTEST_HZ)
		return false;
	mult = ((unsigned __int128)ns << 32) / ticks;
	if (!mult || mult > UINT64_MAX)
		return false;
	out->mult = (uint64_t)mult;
	out->baseline_ns = ns;
	out->error_ns = first->error_ns > last->error_ns ? first->error_ns : last->error_ns;
	return true;
}

/* Pair n of a process: 0 is the first, the others are a ring. */
static const struct kymo_clock_pair *pair_of(const struct kymo_clock_pair *pairs, uint32_t n)
{
	return &pairs[n ? 1 + (n - 1) % (KYMO_CLOCK_PAIRS - 1) : 0];
}

bool clock_newest_pairs(const struct kymo_clock_pair pairs[KYMO_CLOCK_PAIRS], uint32_t count,
			struct kymo_clock_pair *first, struct kymo_clock_pair *last, bool *nonsense)
{
	struct clock_rate rate;

	*first = *last = pairs[0];
	*nonsense = false;
	if (!clock_is_filled(first))
		return false;
	/* The newest may be half written: then the one before is used. */
	for (uint32_t back = 1; back < KYMO_CLOCK_PAIRS && back < count; back++) {
		*last = *pair_of(pairs, count - back);
		if (clock_is_filled(last) && clock_rate_between(first, last, &rate))
			return true;
		*nonsense = *nonsense || clock_is_filled(last);
	}
	*last = *first;
	return false;
}
