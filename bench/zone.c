/*
 * A zone while recording, against the floor (bench.h). What is recorded how is the environment's:
 * KYMO=on with KYMO_TOTALS and KYMO_KEEP.
 *
 *	zone LABEL THREADS	zone.LABEL.SHAPE.THREADS for each shape
 */
#include <pthread.h>

#include "bench.h"

#define SLICE_ZONES 16384u
#define PAIRS 240

/* What stands between the ends of a zone: nothing, but the compiler may not merge two of them. */
#define WORK() __asm__ volatile("" ::: "memory")
#define REPEAT_8(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

static void one_ours(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		KYMO_SCOPE("bench.one");
		WORK();
	}
}

static void one_floor(uint64_t count, void *context)
{
	const struct bench_floor floor = *(struct bench_floor *)context;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = kymo__ticks();

		WORK();
		bench_floor_close(&floor, start, 1);
	}
}

static void eight_ours(uint64_t count, void *context)
{
	(void)context;
#define ONE(n) \
	{ \
		KYMO_SCOPE("bench.eight." #n); \
		WORK(); \
	}
	for (uint64_t i = 0; i < count; i += 8) {
		REPEAT_8(ONE)
	}
#undef ONE
}

static void eight_floor(uint64_t count, void *context)
{
	const struct bench_floor floor = *(struct bench_floor *)context;

#define ONE(n) \
	{ \
		uint64_t start = kymo__ticks(); \
		WORK(); \
		bench_floor_close(&floor, start, n); \
	}
	for (uint64_t i = 0; i < count; i += 8) {
		REPEAT_8(ONE)
	}
#undef ONE
}

static void nested_ours(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i += 4) {
		KYMO_SCOPE("bench.nested.0");
		WORK();
		KYMO_SCOPE("bench.nested.1");
		WORK();
		KYMO_SCOPE("bench.nested.2");
		WORK();
		KYMO_SCOPE("bench.nested.3");
		WORK();
	}
}

static void nested_floor(uint64_t count, void *context)
{
	const struct bench_floor floor = *(struct bench_floor *)context;

	for (uint64_t i = 0; i < count; i += 4) {
		uint64_t start[4];

		for (uint32_t depth = 0; depth < 4; depth++) {
			start[depth] = kymo__ticks();
			WORK();
		}
		for (uint32_t depth = 4; depth-- > 0;)
			bench_floor_close(&floor, start[depth], depth);
	}
}

static BENCH_NOINLINE void call_zone(void)
{
	KYMO_SCOPE("bench.call");
	WORK();
}

static void call_ours(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		call_zone();
}

static BENCH_NOINLINE void call_floor_zone(const struct bench_floor *floor)
{
	uint64_t start = kymo__ticks();

	WORK();
	bench_floor_close(floor, start, 1);
}

static void call_floor(uint64_t count, void *context)
{
	for (uint64_t i = 0; i < count; i++)
		call_floor_zone(context);
}

/* The functions of the library, for starts and stops that are not in one block. */
static void region_ours(uint64_t count, void *context)
{
	static struct kymo_region region = KYMO_REGION_INIT("bench.region");

	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		kymo_region_start(&region);
		WORK();
		kymo_region_stop(&region);
	}
}

static const struct table_shape {
	const char *name;
	bench_body *ours, *floor;
} shapes[] = {
	{ "one", one_ours, one_floor },		 { "eight", eight_ours, eight_floor },
	{ "nested", nested_ours, nested_floor }, { "call", call_ours, call_floor },
	{ "region", region_ours, one_floor },
};

struct worker {
	pthread_t thread;
	pthread_barrier_t *start;
	const char *label;
	int threads, index;
};

static void *work(void *context)
{
	struct worker *worker = context;
	struct bench_comparison *result = malloc(sizeof(*result));
	struct bench_floor floor = bench_floor_init();
	char key[96];

	if (!result)
		bench_die("malloc");
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		pthread_barrier_wait(worker->start);
		bench_compare(result, shapes[i].ours, shapes[i].floor, SLICE_ZONES, PAIRS, &floor);
		snprintf(key, sizeof(key), "zone.%s.%s.%d", worker->label, shapes[i].name,
			 worker->threads);
		bench_emit_comparison(key, result);
	}
	free(result);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	struct worker workers[8];
	pthread_barrier_t start;

	if (argc < 3 || threads < 1 || threads > 8) {
		fprintf(stderr, "usage: KYMO=on zone LABEL THREADS\n");
		return 2;
	}
	if (!kymo_enabled()) {
		fprintf(stderr, "zone: nothing is recorded: set KYMO=on\n");
		return 1;
	}
	pthread_barrier_init(&start, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){ 0, &start, argv[1], threads, i };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			bench_die("pthread_create");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}
