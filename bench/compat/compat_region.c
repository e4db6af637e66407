/*
 * A region through vaccel_prof.h against the native zone, and one region that two threads are in at
 * once against one thread alone.
 *
 *	VACCEL_PROF_ENABLED=1 compat_region
 *		compat.region, compat.native_region, compat.threads.2
 */
#include <pthread.h>

#include <vaccel_prof.h>

#include "../bench.h"

#define SLICE 16384u
#define PAIRS 240

#define WORK() __asm__ volatile("" ::: "memory")

static struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("bench.compat");
static struct vaccel_prof_region shared = VACCEL_PROF_REGION_INIT("bench.shared");

static void through_compat(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		vaccel_prof_region_start(&region);
		WORK();
		vaccel_prof_region_stop(&region);
	}
}

static void through_shared(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		vaccel_prof_region_start(&shared);
		WORK();
		vaccel_prof_region_stop(&shared);
	}
}

static void native_zone(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		KYMO_SCOPE("bench.zone");
		WORK();
	}
}

static void native_region(uint64_t count, void *context)
{
	static struct kymo_region native = KYMO_REGION_INIT("bench.native");

	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		kymo_region_start(&native);
		WORK();
		kymo_region_stop(&native);
	}
}

/* ---- two threads ---------------------------------------------------------------------------- */

static pthread_barrier_t in_step;

static void *second_thread(void *context)
{
	(void)context;
	for (int i = 0; i < PAIRS; i++) {
		pthread_barrier_wait(&in_step);
		through_shared(SLICE, NULL);
		pthread_barrier_wait(&in_step);
	}
	return NULL;
}

/* Each pair: a slice in a region of its own, then one in a region that the other thread is in
   too. */
static void emit_threads(void)
{
	static double ratio[PAIRS], ns[PAIRS];
	pthread_t second;

	pthread_barrier_init(&in_step, NULL, 2);
	if (pthread_create(&second, NULL, second_thread, NULL))
		bench_die("pthread_create");
	for (int i = 0; i < PAIRS; i++) {
		double alone = bench_slice_ns(through_compat, SLICE, NULL);

		pthread_barrier_wait(&in_step);
		ns[i] = bench_slice_ns(through_shared, SLICE, NULL);
		pthread_barrier_wait(&in_step);
		ratio[i] = ns[i] / alone;
	}
	pthread_join(second, NULL);
	bench_emit_samples("compat.threads.2", "x", ratio, PAIRS);
	bench_emit_samples("compat.threads.2.ns", "ns", ns, PAIRS);
}

int main(void)
{
	static struct bench_comparison result;

	if (!vaccel_prof_enabled()) {
		fprintf(stderr, "compat_region: nothing is recorded: set VACCEL_PROF_ENABLED=1\n");
		return 1;
	}
	bench_compare(&result, through_compat, native_zone, SLICE, PAIRS, NULL);
	bench_emit_comparison("compat.region", &result);
	bench_compare(&result, native_region, native_zone, SLICE, PAIRS, NULL);
	bench_emit_comparison("compat.native_region", &result);
	emit_threads();
	vaccel_prof_regions_print_all_to_buf(NULL, 0, &shared,
					     1); /* brings nr_entries up to date */
	if (shared.nr_entries != SLICE * 2 * (uint64_t)PAIRS) {
		fprintf(stderr, "compat_region: %zu entries were counted\n", shared.nr_entries);
		return 1;
	}
	return 0;
}
