/*
 * What watching malloc costs, and how good samples are. The library is opened as it is in a program
 * that runs already, so that both can be had in turn in one process.
 *
 *	memory pairs LIBRARY         sampled, against nothing
 *	memory plain KEY             a pair, as it is: for LD_PRELOAD
 *	memory accuracy LIBRARY      100 runs of 100 MB and of 1 GB in 6 sites
 *	memory switch LIBRARY KEY [PLUGIN FOLDER COUNT]
 */
#include <dlfcn.h>

#include "bench.h"
#include "record/memory/memory.h"

#define PAIRS 65536u
#define SLICES 200
#define RUNS 100
#define SITES 6
#define SWITCHES 50

static int (*start)(struct kymo_memory_watch *, enum kymo_memory_mode);
static void (*stop)(struct kymo_memory_watch *);
static void (*look)(const struct kymo_memory_watch *, struct kymo_memory_stats *);
static size_t (*list_sites)(struct kymo_memory_site *, size_t);
static uint32_t (*frame)(uint32_t, char *, size_t, char *, size_t, uint32_t *);

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "memory: %s\n", dlerror());
		exit(1);
	}
	return found;
}

static void open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "memory: %s\n", dlerror());
		exit(1);
	}
	*(void **)&start = symbol(library, "kymo_memory_start");
	*(void **)&stop = symbol(library, "kymo_memory_stop");
	*(void **)&look = symbol(library, "kymo_memory_read");
	*(void **)&list_sites = symbol(library, "kymo_memory_sites");
	*(void **)&frame = symbol(library, "kymo_memory_frame");
}

static void begin(struct kymo_memory_watch *watch)
{
	int rc = start(watch, KYMO_MEMORY_SAMPLED);

	if (rc) {
		fprintf(stderr, "memory: calls cannot be redirected: %s\n", strerror(-rc));
		exit(1);
	}
}

static void pairs(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		void *volatile ptr = malloc(16 + (i & 63));

		free(ptr);
	}
}

static void measure_pairs(void)
{
	static double with[SLICES], without[SLICES], extra[SLICES];
	struct kymo_memory_watch watch;

	pairs(PAIRS, NULL);
	for (int i = 0; i < SLICES; i++) {
		without[i] = bench_slice_ns(pairs, PAIRS, NULL);
		begin(&watch);
		with[i] = bench_slice_ns(pairs, PAIRS, NULL);
		stop(&watch);
		extra[i] = with[i] - without[i];
	}
	bench_emit_samples("memory.pair", "ns", extra, SLICES);
	bench_emit("memory.pair.with", "ns", bench_quantile(with, SLICES, 0));
	bench_emit("memory.pair.without", "ns", bench_quantile(without, SLICES, 0));
}

static void measure_plain(const char *key)
{
	double least = 1e9;

	for (int i = 0; i < SLICES; i++) {
		double ns = bench_slice_ns(pairs, PAIRS, NULL);

		least = ns < least ? ns : least;
	}
	bench_emit(key, "ns", least);
}

/* ---- accuracy -------------------------------------------------------------------------------- */

#define SITE(n) \
	static BENCH_NOINLINE void bench_site_##n(size_t bytes) \
	{ \
		void *volatile ptr = malloc(bytes); \
\
		free(ptr); \
	}
SITE(0)
SITE(1)
SITE(2)
SITE(3)
SITE(4)
SITE(5)
static void (*const sites[SITES])(size_t) = { bench_site_0, bench_site_1, bench_site_2,
					      bench_site_3, bench_site_4, bench_site_5 };
static const unsigned percent[SITES] = { 40, 25, 15, 10, 6, 4 };

/* Sizes from 64 to 4,159 bytes; the truth by site is in `of`. */
static double allocate(double bytes, double of[SITES])
{
	static uint64_t random = 88172645463325252u;
	double all = 0;

	memset(of, 0, SITES * sizeof(*of));
	while (all < bytes) {
		unsigned draw, site = 0;
		size_t size;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		size = 64 + (random >> 20 & 4095);
		for (draw = (unsigned)(random >> 40) % 100; draw >= percent[site]; site++)
			draw -= percent[site];
		sites[site](size);
		of[site] += (double)size;
		all += (double)size;
	}
	return all;
}

/* What the samples say of each site, whatever its callers. */
static void estimates(double of[SITES])
{
	static struct kymo_memory_site rows[256];
	char name[256], file[256];
	uint32_t line;
	size_t count = list_sites(rows, 256);

	memset(of, 0, SITES * sizeof(*of));
	for (size_t i = 0; i < count && i < 256; i++) {
		unsigned site;

		frame(rows[i].node, name, sizeof(name), file, sizeof(file), &line);
		if (sscanf(name, "bench_site_%u", &site) == 1 && site < SITES)
			of[site] += (double)rows[i].total_bytes;
	}
}

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

/* The errors that 95 of 100 runs stay within: of the total in %, of the worst of the five largest
   sites in points. */
static void measure_accuracy(const char *key, double bytes)
{
	double total[RUNS], summed[RUNS], worst[RUNS], truth[SITES], found[SITES];
	struct kymo_memory_watch watch;
	struct kymo_memory_stats stats;
	char name[64];

	for (int run = 0; run < RUNS; run++) {
		double all, sum = 0;

		begin(&watch);
		all = allocate(bytes, truth);
		estimates(found);
		look(&watch, &stats);
		stop(&watch);
		for (int i = 0; i < SITES; i++)
			sum += found[i];
		total[run] = 100 * distance((double)stats.total_bytes, all) / all;
		summed[run] = 100 * distance(sum, all) / all;
		worst[run] = 0;
		for (int i = 0; i < 5; i++) {
			double off = 100 * distance(found[i] / sum, truth[i] / all);

			worst[run] = off > worst[run] ? off : worst[run];
		}
	}
	bench_emit(key, "%", bench_quantile(total, RUNS, 0.94));
	snprintf(name, sizeof(name), "%s.summed", key);
	bench_emit(name, "%", bench_quantile(summed, RUNS, 0.94));
	snprintf(name, sizeof(name), "%s.sites", key);
	bench_emit(name, "points", bench_quantile(worst, RUNS, 0.94));
}

/* ---- switches -------------------------------------------------------------------------------- */

static void load(const char *plugin, const char *folder, int count)
{
	char command[4096];

	for (int i = 0; i < count; i++) {
		snprintf(command, sizeof(command), "cp '%s' '%s/p%d.so'", plugin, folder, i);
		if (system(command))
			bench_die("cp");
		snprintf(command, sizeof(command), "%s/p%d.so", folder, i);
		if (!dlopen(command, RTLD_NOW | RTLD_LOCAL)) {
			fprintf(stderr, "memory: %s\n", dlerror());
			exit(1);
		}
	}
}

static void measure_switch(const char *key)
{
	double ms[SWITCHES];
	struct kymo_memory_watch watch;

	for (int i = 0; i < SWITCHES; i++) {
		uint64_t from = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);

		begin(&watch);
		ms[i] = (double)(bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - from) / 1e6;
		stop(&watch);
	}
	bench_emit_samples(key, "ms", ms, SWITCHES);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "plain")) {
		measure_plain(argv[2]);
		return 0;
	}
	open_library(argv[2]);
	if (!strcmp(argv[1], "pairs"))
		measure_pairs();
	if (!strcmp(argv[1], "accuracy")) {
		measure_accuracy("memory.100mb", 100e6);
		measure_accuracy("memory.1gb", 1e9);
	}
	if (!strcmp(argv[1], "switch") && argc > 3) {
		if (argc > 6)
			load(argv[4], argv[5], atoi(argv[6]));
		measure_switch(argv[3]);
	}
	return 0;
}
