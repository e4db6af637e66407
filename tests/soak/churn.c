/*
 * Records all that a program can, for a long time, and counts each attempt by itself: zones,
 * regions, marks with text, counters, steps, rows of a table, names that repeat, threads that come
 * and go, children, a signal handler.
 *
 *	churn SECONDS COUNTS	writes the attempted rows of each table to COUNTS, as JSON
 *
 * Readers can check rows: zones named soak.depth.N are N deep, and in soak.checks, b is
 * xor(a, MASK).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

#define THREADS 3
#define CHILDREN 200 /* in all */
#define NAMES 300
#define MASK 0x5bd1e9955bd1e995u
#define COUNT(what) __atomic_fetch_add(&counts->what, 1, __ATOMIC_RELAXED)

/* In memory that children share. */
static struct counts {
	uint64_t zones, marks, counters, steps, checks, threads, children;
} * counts;

struct check_row {
	uint64_t a, b;
	uint64_t at;
	char text[24];
};
static struct kymo_table *checks;
static volatile int stop;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Interrupts recording itself: such rows are dropped, and counted as attempted. */
static void on_alarm(int signal)
{
	int saved = errno;

	(void)signal;
	COUNT(zones);
	{
		KYMO_SCOPE("soak.signal");
	}
	errno = saved;
}

static void nested(void)
{
	KYMO_SCOPE("soak.depth.0");
	KYMO_SCOPE("soak.depth.1");
	KYMO_SCOPE("soak.depth.2");
	KYMO_SCOPE("soak.depth.3");
	for (int i = 0; i < 4; i++)
		COUNT(zones);
}

static void named_at_run_time(uint64_t number)
{
	char name[64];
	struct kymo_zone zone;

	snprintf(name, sizeof(name), "soak.named.%d", (int)(number % NAMES));
	zone = kymo_zone_begin_id(kymo_name(name));
	COUNT(zones);
	if (number % 7 == 0)
		kymo_zone_text(name, strlen(name));
	kymo_zone_end(&zone);
}

static void append_check(uint64_t number)
{
	struct check_row row = { number, number ^ MASK, kymo_ticks(), "a row" };

	COUNT(checks);
	kymo_table_append(checks, &row);
}

static void mark_with_text(uint64_t number)
{
	char text[200];

	memset(text, 'a' + (int)(number % 26), sizeof(text));
	text[number % sizeof(text)] = 0;
	COUNT(marks);
	kymo_mark("soak.mark", text);
}

static void burst(uint64_t number)
{
	for (int i = 0; i < 16; i++)
		nested();
	named_at_run_time(number);
	COUNT(counters);
	kymo_counter("soak.counter", (double)number);
	if (number % 4 == 0)
		append_check(number);
	if (number % 16 == 0)
		mark_with_text(number);
}

/* A short life; others follow. */
static void *live(void *context)
{
	double end = now_s() + 0.05 + 0.0002 * (double)((uintptr_t)context % 1000);
	uint64_t number = (uintptr_t)context;

	COUNT(threads);
	while (!stop && now_s() < end) {
		burst(number++);
		usleep(2000);
	}
	return NULL;
}

static void *keep_alive(void *context)
{
	uintptr_t number = (uintptr_t)context;
	pthread_t thread;

	while (!stop) {
		number = number * 1103515245u + 12345u;
		if (pthread_create(&thread, NULL, live, (void *)(number & 0xfffff)))
			break;
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void one_child(void)
{
	pid_t child = fork();

	if (!child) {
		for (uint64_t i = 0; i < 50; i++)
			burst(i);
		_exit(0);
	}
	COUNT(children);
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void run(double seconds)
{
	double from = now_s(), next_child = from;

	while (now_s() < from + seconds) {
		kymo_step("soak.step");
		burst((uint64_t)((now_s() - from) * 1000));
		usleep(5000);
		if (now_s() >= next_child) {
			one_child();
			next_child += seconds / CHILDREN;
		}
		kymo_step_end("soak.step");
		COUNT(steps);
	}
}

static int write_counts(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return 1;
	fprintf(file,
		"{\"trace.zones\": %lu, \"trace.marks\": %lu, \"trace.counters\": %lu, "
		"\"trace.steps\": %lu, "
		"\"soak.checks\": %lu, \"threads\": %lu, \"children\": %lu}\n",
		counts->zones, counts->marks, counts->counters, counts->steps, counts->checks,
		counts->threads, counts->children);
	return fclose(file) ? 1 : 0;
}

static void start_signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 7919 }, { 0, 7919 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

int main(int argc, char **argv)
{
	static const struct kymo_column columns[] = {
		{ "a", KYMO_U64, offsetof(struct check_row, a), 0, NULL },
		{ "b", KYMO_U64, offsetof(struct check_row, b), 0, NULL },
		{ "at_ns", KYMO_TIME, offsetof(struct check_row, at), 0, NULL },
		{ "text", KYMO_TEXT, offsetof(struct check_row, text), 24, NULL },
	};
	pthread_t keepers[THREADS];
	struct kymo_error err;

	if (argc != 3)
		return 2;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	checks = kymo_table_create("soak.checks", columns, 4, sizeof(struct check_row), &err);
	if (counts == MAP_FAILED || !checks || !kymo_enabled()) {
		fprintf(stderr, "churn: cannot begin: %s\n",
			checks ? "nothing is recorded" : err.text);
		return 1;
	}
	start_signals();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&keepers[i], NULL, keep_alive, (void *)(i + 1)))
			return 1;
	run(atof(argv[1]));
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(keepers[i], NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	return write_counts(argv[2]);
}
