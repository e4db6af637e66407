/*
 * What threads cost: the first row of one, from the pool and with a new stream; then many short
 * ones, eight alive at a time, against the same without recording: time, files, memory.
 *
 *	threads first	threads.{pool,new}.{p50,p99}
 *	threads COUNT	threads.COUNT.*
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

#include "bench.h"

#define ALIVE 8
#define ROUNDS 10
#define POOL_SAMPLES 4000
#define NEW_SAMPLES 200

/* ---- the first row -------------------------------------------------------------------------- */

static pthread_barrier_t all_have_one;

static void *first_row(void *context)
{
	uint64_t start = kymo_ticks();

	{
		KYMO_SCOPE("bench.first");
	}
	*(double *)context = (double)(kymo_ticks() - start);
	return NULL;
}

static void *first_row_and_hold(void *context)
{
	first_row(context);
	pthread_barrier_wait(&all_have_one);
	return NULL;
}

static void emit_ticks(const char *name, double *ticks, size_t count, double ns_per_tick)
{
	char key[64];

	snprintf(key, sizeof(key), "threads.%s.p50", name);
	bench_emit(key, "ns", bench_quantile(ticks, count, 0.5) * ns_per_tick);
	snprintf(key, sizeof(key), "threads.%s.p99", name);
	bench_emit(key, "ns", bench_quantile(ticks, count, 0.99) * ns_per_tick);
}

static void start(pthread_t *thread, void *(*body)(void *), void *context)
{
	if (pthread_create(thread, NULL, body, context))
		bench_die("pthread_create");
}

static void measure_first(void)
{
	static double ticks[POOL_SAMPLES];
	double ns_per_tick = bench_ns_per_tick();
	pthread_t threads[NEW_SAMPLES];

	pthread_barrier_init(&all_have_one, NULL, NEW_SAMPLES);
	for (int i = 0; i < NEW_SAMPLES; i++)
		start(&threads[i], first_row_and_hold, &ticks[i]);
	for (int i = 0; i < NEW_SAMPLES; i++)
		pthread_join(threads[i], NULL);
	emit_ticks("new", ticks, NEW_SAMPLES, ns_per_tick);
	/* All those streams are in the pool now. */
	for (int i = 0; i < POOL_SAMPLES; i++) {
		start(&threads[0], first_row, &ticks[i]);
		pthread_join(threads[0], NULL);
	}
	emit_ticks("pool", ticks, POOL_SAMPLES, ns_per_tick);
}

/* ---- many of them ---------------------------------------------------------------------------- */

static void *short_life(void *context)
{
	(void)context;
	for (int i = 0; i < 10; i++) {
		KYMO_SCOPE("bench.short");
		__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static double churn_ns(long count)
{
	pthread_t threads[ALIVE];
	uint64_t from = bench_now_ns();

	for (long i = 0; i < count; i++) {
		if (i >= ALIVE)
			pthread_join(threads[i % ALIVE], NULL);
		start(&threads[i % ALIVE], short_life, NULL);
	}
	for (long i = 0; i < ALIVE && i < count; i++)
		pthread_join(threads[i], NULL);
	return (double)(bench_now_ns() - from) / (double)count;
}

struct usage {
	double files, bytes;
};

static void add_files(const char *path, struct usage *usage)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;
	char child[4096];

	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
		if (lstat(child, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			add_files(child, usage);
			continue;
		}
		usage->files++;
		usage->bytes += (double)st.st_blocks * 512;
	}
	if (dir)
		closedir(dir);
}

/* Memory of our own: what is in files comes on top. */
static double anonymous_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	double kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %lf", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

static void emit_count(long count, const char *name, const char *unit, double value)
{
	char key[64];

	snprintf(key, sizeof(key), "threads.%ld.%s", count, name);
	bench_emit(key, unit, value);
}

/* With and without recording in turn; `count` threads with it. False: it cannot be turned on. */
static bool churn_in_turn(long count, double extra_ns[ROUNDS], double off_ns[ROUNDS])
{
	struct kymo_error err;

	for (int i = 0; i < ROUNDS; i++) {
		kymo_disable();
		off_ns[i] = churn_ns(count / ROUNDS / 2);
		if (kymo_enable(&err)) {
			fprintf(stderr, "threads: %s\n", err.text);
			return false;
		}
		extra_ns[i] = churn_ns(count / ROUNDS) - off_ns[i];
	}
	return true;
}

static int measure_many(long count)
{
	struct usage usage = { 0, 0 };
	double extra_ns[ROUNDS], off_ns[ROUNDS], memory;

	churn_ns(ALIVE); /* the C library's own first things */
	memory = anonymous_bytes();
	if (!churn_in_turn(count, extra_ns, off_ns))
		return 1;
	memory = anonymous_bytes() - memory;
	add_files(kymo_directory(), &usage);
	emit_count(count, "extra_ns", "ns", bench_quantile(extra_ns, ROUNDS, 0.5));
	emit_count(count, "off_ns", "ns", bench_quantile(off_ns, ROUNDS, 0.5));
	emit_count(count, "files", "", usage.files);
	emit_count(count, "file_bytes", "B", usage.bytes);
	emit_count(count, "memory_bytes", "B", memory);
	emit_count(count, "per_live_thread_bytes", "B",
		   (usage.bytes + (memory > 0 ? memory : 0)) / ALIVE);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: threads first|COUNT\n");
		return 2;
	}
	if (strcmp(argv[1], "first"))
		return measure_many(atol(argv[1]));
	if (!kymo_enabled()) {
		fprintf(stderr, "threads: nothing is recorded: set KYMO=on\n");
		return 1;
	}
	measure_first();
	return 0;
}
