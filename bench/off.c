/* A zone while nothing is recorded, less the empty loop: never turned on, and turned on and off
   again. */
#include "bench.h"

#define SLICE_ZONES 262144u
#define PAIRS 400

static void empty(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		__asm__ volatile("" ::: "memory");
}

static void zone(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		KYMO_SCOPE("bench.off");
		__asm__ volatile("" ::: "memory");
	}
}

/* The shape of most code: the zone is in a function that is called. */
static BENCH_NOINLINE void called_empty(void)
{
	__asm__ volatile("" ::: "memory");
}

static BENCH_NOINLINE void called_zone(void)
{
	KYMO_SCOPE("bench.off.called");
	__asm__ volatile("" ::: "memory");
}

static void call_empty(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		called_empty();
}

static void call_zone(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		called_zone();
}

static struct bench_comparison result;

static void measure(const char *key, bench_body *with, bench_body *without)
{
	char name[64];

	bench_compare(&result, with, without, SLICE_ZONES, PAIRS, NULL);
	bench_emit_samples(key, "ns", result.extra_ns, result.pairs);
	snprintf(name, sizeof(name), "%s.with_ns", key);
	bench_emit_samples(name, "ns", result.ours_ns, result.pairs);
	snprintf(name, sizeof(name), "%s.without_ns", key);
	bench_emit_samples(name, "ns", result.base_ns, result.pairs);
}

int main(void)
{
	struct kymo_error err;

	measure("off.never.inline", zone, empty);
	measure("off.never.call", call_zone, call_empty);
	if (kymo_enable(&err)) {
		fprintf(stderr, "off: %s\n", err.text);
		return 1;
	}
	zone(1000, NULL);
	kymo_disable();
	measure("off.again.inline", zone, empty);
	measure("off.again.call", call_zone, call_empty);
	return 0;
}
