/*
 * What the benchmarks share. Each is a small program that prints JSON lines,
 *
 *	{"key": "zone.flight.one.1", "value": 1.18, "low": 1.16, "high": 1.20, "unit": "x"}
 *
 * and bench/run collects them; the bars and the words are there, none of them here.
 *
 * Two things are compared in one process, in short slices that alternate, and the median of the
 * ratios of neighbouring slices counts: what else the machine does then hits both alike.
 */
#ifndef KYMO_BENCH_H
#define KYMO_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

#define BENCH_NOINLINE __attribute__((noinline))

/* ---- saying it --------------------------------------------------------------------------- */

static inline void bench_emit_range(const char *key, const char *unit, double value, double low,
				    double high)
{
	/* One write() per line: threads and children share the pipe. */
	char line[512];
	int bytes = snprintf(line, sizeof(line),
			     "{\"key\": \"%s\", \"value\": %.6g, \"low\": %.6g, \"high\": %.6g, "
			     "\"unit\": \"%s\"}\n",
			     key, value, low, high, unit);

	if (bytes > 0 && write(STDOUT_FILENO, line, (size_t)bytes) < 0)
		exit(1);
}

static inline void bench_emit(const char *key, const char *unit, double value)
{
	bench_emit_range(key, unit, value, value, value);
}

static inline void bench_die(const char *what)
{
	perror(what);
	exit(1);
}

/* The recording as a whole, as `kymo query` takes it: the directory that this process's own is
   in. */
static inline const char *bench_recording(void)
{
	static char path[4096];
	char *slash;

	snprintf(path, sizeof(path), "%s", kymo_directory());
	slash = strrchr(path, '/');
	if (slash)
		*slash = 0;
	return path;
}

/* ---- clocks ------------------------------------------------------------------------------ */

static inline uint64_t bench_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t bench_now_ns(void)
{
	return bench_clock_ns(CLOCK_MONOTONIC);
}

/* Of the CPU's counter. */
static inline double bench_ns_per_tick(void)
{
	uint64_t ns = bench_now_ns(), ticks = kymo_ticks();

	while (bench_now_ns() - ns < 50000000)
		;
	return (double)(bench_now_ns() - ns) / (double)(kymo_ticks() - ticks);
}

/* ---- samples ----------------------------------------------------------------------------- */

static int bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. share: 0.5 is the median. */
static inline double bench_quantile(double *samples, size_t count, double share)
{
	size_t at = (size_t)(share * (double)count);

	if (!count)
		return 0;
	qsort(samples, count, sizeof(*samples), bench_by_value);
	return samples[at < count ? at : count - 1];
}

static inline void bench_emit_samples(const char *key, const char *unit, double *samples,
				      size_t count)
{
	bench_emit_range(key, unit, bench_quantile(samples, count, 0.5),
			 bench_quantile(samples, count, 0.25),
			 bench_quantile(samples, count, 0.75));
}

/* ---- two bodies in turn ------------------------------------------------------------------- */

#define BENCH_PAIRS_MAX 4096

/* Does its thing `count` times. */
typedef void bench_body(uint64_t count, void *context);

struct bench_comparison {
	double ratio[BENCH_PAIRS_MAX]; /* of a pair of slices */
	double extra_ns[BENCH_PAIRS_MAX]; /* ours - base, for one */
	double ours_ns[BENCH_PAIRS_MAX], base_ns[BENCH_PAIRS_MAX];
	size_t pairs;
};

/* CPU time of the thread: the slices of others do not count. */
static inline double bench_slice_ns(bench_body *body, uint64_t count, void *context)
{
	uint64_t from = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	body(count, context);
	return (double)(bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - from) / (double)count;
}

static inline void bench_compare(struct bench_comparison *out, bench_body *ours, bench_body *base,
				 uint64_t count, size_t pairs, void *context)
{
	out->pairs = pairs < BENCH_PAIRS_MAX ? pairs : BENCH_PAIRS_MAX;
	bench_slice_ns(base, count, context);
	bench_slice_ns(ours, count, context);
	for (size_t i = 0; i < out->pairs; i++) {
		/* Base ours, ours base, …: what is better for the second one cancels too. */
		double first = bench_slice_ns(i & 1 ? ours : base, count, context);
		double second = bench_slice_ns(i & 1 ? base : ours, count, context);

		out->ours_ns[i] = i & 1 ? first : second;
		out->base_ns[i] = i & 1 ? second : first;
		out->ratio[i] = out->ours_ns[i] / out->base_ns[i];
		out->extra_ns[i] = out->ours_ns[i] - out->base_ns[i];
	}
}

/* KEY (ratio), KEY.ns and KEY.base_ns. */
static inline void bench_emit_comparison(const char *key, struct bench_comparison *of)
{
	char name[128];

	bench_emit_samples(key, "x", of->ratio, of->pairs);
	snprintf(name, sizeof(name), "%s.ns", key);
	bench_emit_samples(name, "ns", of->ours_ns, of->pairs);
	snprintf(name, sizeof(name), "%s.base_ns", key);
	bench_emit_samples(name, "ns", of->base_ns, of->pairs);
}

/* ---- the floor ---------------------------------------------------------------------------- */

#define BENCH_FLOOR_ROWS 8192u

/* The least that recording a zone can cost: two readings of the counter, 32 bytes into a mapped
   ring, and a release store that publishes them. Nothing is checked, counted, nested or
   totalled. */
struct bench_floor {
	uint64_t *rows;
	uint64_t *head;
};

static inline struct bench_floor bench_floor_init(void)
{
	size_t bytes = 4096 + BENCH_FLOOR_ROWS * 32;
	int fd = memfd_create("floor", 0); /* tmpfs, as our rings are */
	char *map;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		bench_die("memfd");
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		bench_die("mmap");
	close(fd);
	memset(map, 0, bytes);
	return (struct bench_floor){ (uint64_t *)(void *)(map + 4096), (uint64_t *)(void *)map };
}

static inline __attribute__((always_inline)) void bench_floor_close(const struct bench_floor *floor,
								    uint64_t start, uint32_t name)
{
	uint64_t end = kymo__ticks(), head = *floor->head;
	uint64_t *row = floor->rows + (head & (BENCH_FLOOR_ROWS - 1)) * 4;

	__atomic_store_n(&row[0], start, __ATOMIC_RELAXED);
	__atomic_store_n(&row[1], end - start, __ATOMIC_RELAXED);
	__atomic_store_n(&row[2], name, __ATOMIC_RELAXED);
	__atomic_store_n(&row[3], 0, __ATOMIC_RELAXED);
	__atomic_store_n(floor->head, head + 1, __ATOMIC_RELEASE);
}

#endif
