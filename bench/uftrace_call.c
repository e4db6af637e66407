/*
 * A peer: a call as uftrace records one, against the same floor. Run under `uftrace record`. The
 * two calls below are what -finstrument-functions puts at both ends of a function; written out, the
 * floor in this file stays without.
 */
#include "bench.h"

extern void __cyg_profile_func_enter(void *function, void *call_site);
extern void __cyg_profile_func_exit(void *function, void *call_site);

static BENCH_NOINLINE void traced(void)
{
	__cyg_profile_func_enter((void *)traced, __builtin_return_address(0));
	__asm__ volatile("" ::: "memory");
	__cyg_profile_func_exit((void *)traced, __builtin_return_address(0));
}

static void uftrace(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		traced();
}

static BENCH_NOINLINE void floor_zone(const struct bench_floor *floor)
{
	uint64_t start = kymo__ticks();

	__asm__ volatile("" ::: "memory");
	bench_floor_close(floor, start, 1);
}

static void floor_zones(uint64_t count, void *context)
{
	for (uint64_t i = 0; i < count; i++)
		floor_zone(context);
}

static struct bench_comparison result;

int main(void)
{
	struct bench_floor floor = bench_floor_init();

	/* Not traced: libc's own two empty functions cost a nanosecond or so. */
	if (bench_slice_ns(uftrace, 100000, NULL) < 5) {
		fprintf(stderr, "uftrace_call: uftrace does not trace this program\n");
		return 1;
	}
	bench_compare(&result, uftrace, floor_zones, 2048, 200, &floor);
	bench_emit_comparison("peer.uftrace", &result);
	return 0;
}
