/*
 * A peer: a zone as LTTng-UST records one, an event at each end, against the same floor. bench/run
 * starts a session before; without one the events are off, and that is measured instead.
 *
 *	lttng_zone on [KEY]	peer.lttng, or KEY
 *	lttng_zone off		peer.lttng_off (ns)
 */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "lttng_events.h"

#include "bench.h"

static void lttng(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		lttng_ust_tracepoint(kymo_bench, begin, 1);
		__asm__ volatile("" ::: "memory");
		lttng_ust_tracepoint(kymo_bench, end, 1);
	}
}

static void floor_zone(uint64_t count, void *context)
{
	const struct bench_floor floor = *(struct bench_floor *)context;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = kymo__ticks();

		__asm__ volatile("" ::: "memory");
		bench_floor_close(&floor, start, 1);
	}
}

static void empty(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		__asm__ volatile("" ::: "memory");
}

static struct bench_comparison result;

int main(int argc, char **argv)
{
	struct bench_floor floor = bench_floor_init();
	int on = lttng_ust_tracepoint_enabled(kymo_bench, begin);

	if (argc < 2 || on != !strcmp(argv[1], "on")) {
		fprintf(stderr, "lttng_zone: the session %s these events\n",
			on ? "takes" : "does not take");
		return 1;
	}
	if (on) {
		bench_compare(&result, lttng, floor_zone, 2048, 200, &floor);
		bench_emit_comparison(argc > 2 ? argv[2] : "peer.lttng", &result);
	} else {
		bench_compare(&result, lttng, empty, 262144, 200, NULL);
		bench_emit_samples("peer.lttng_off", "ns", result.extra_ns, result.pairs);
	}
	return 0;
}
