/*
 * How long single zones take: each one is timed by itself, and so is the floor, in slices that
 * alternate. The floor's worst ones are the machine's (interrupts, other programs): the rest is
 * kymo's.
 *
 *	latency LABEL SECONDS [READER ARGUMENT…]
 *		latency.LABEL.{zone,floor}.{p50,p99,p999,max}
 *
 * READER is a command that scans the recording; it is started again and again meanwhile, with every
 * word "@" replaced by the recording's directory.
 */
#include <signal.h>
#include <sys/wait.h>

#include "bench.h"

#define SLICE_ZONES 16384u
#define BUCKETS (1u << 21) /* ticks; later ones are counted in the last */

struct times {
	uint64_t count, max;
	uint32_t *at; /* by ticks */
};

static void count_one(struct times *times, uint64_t ticks)
{
	times->count++;
	times->at[ticks < BUCKETS ? ticks : BUCKETS - 1]++;
	if (ticks > times->max)
		times->max = ticks;
}

static void time_zones(struct times *times)
{
	for (uint32_t i = 0; i < SLICE_ZONES; i++) {
		uint64_t start = kymo__ticks();

		{
			KYMO_SCOPE("bench.latency");
		}
		count_one(times, kymo__ticks() - start);
	}
}

static void time_floor(struct times *times, const struct bench_floor *floor)
{
	for (uint32_t i = 0; i < SLICE_ZONES; i++) {
		uint64_t start = kymo__ticks();

		bench_floor_close(floor, kymo__ticks(), 1);
		count_one(times, kymo__ticks() - start);
	}
}

static double quantile_ticks(const struct times *times, double share)
{
	uint64_t rank = (uint64_t)(share * (double)times->count), seen = 0;

	for (uint32_t ticks = 0; ticks < BUCKETS; ticks++) {
		seen += times->at[ticks];
		if (seen > rank)
			return ticks;
	}
	return BUCKETS;
}

static void emit(const char *label, const char *what, const struct times *times, double ns_per_tick)
{
	static const struct {
		const char *name;
		double share;
	} quantiles[] = { { "p50", 0.5 }, { "p99", 0.99 }, { "p999", 0.999 }, { "p9999", 0.9999 } };
	char key[96];

	for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
		snprintf(key, sizeof(key), "latency.%s.%s.%s", label, what, quantiles[i].name);
		bench_emit(key, "ns", quantile_ticks(times, quantiles[i].share) * ns_per_tick);
	}
	snprintf(key, sizeof(key), "latency.%s.%s.max", label, what);
	bench_emit(key, "ns", (double)times->max * ns_per_tick);
}

/* The command once; -1: it could not be started. Returns its wait status. */
static int read_once(char **command)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		execvp(command[0], command);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	return status;
}

/* A process that reads on and on; at SIGTERM it tells how often, by its exit status (at most
   250). */
static volatile sig_atomic_t stop;

static void on_term(int signal)
{
	(void)signal;
	stop = 1;
}

static pid_t start_reader(char **command, const char *directory)
{
	pid_t child = fork();
	int scans = 0;

	if (child)
		return child;
	signal(SIGTERM, on_term);
	for (char **word = command; *word; word++)
		if (!strcmp(*word, "@"))
			*word = (char *)directory;
	while (!stop && !read_once(command))
		scans += scans < 250;
	_exit(stop ? scans : 251);
}

static void end_reader(pid_t reader, const char *label)
{
	char key[96];
	int status = 0;

	kill(reader, SIGTERM);
	waitpid(reader, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 251) {
		fprintf(stderr, "latency: the reader failed\n");
		exit(1);
	}
	snprintf(key, sizeof(key), "latency.%s.scans", label);
	bench_emit(key, "", WEXITSTATUS(status));
}

static struct times times_new(void)
{
	struct times times = { 0, 0, calloc(BUCKETS, sizeof(uint32_t)) };

	if (!times.at)
		bench_die("calloc");
	memset(times.at, 0, BUCKETS * sizeof(uint32_t)); /* no page of it is new later */
	return times;
}

int main(int argc, char **argv)
{
	double ns_per_tick = bench_ns_per_tick();
	struct bench_floor floor = bench_floor_init();
	struct times zones = times_new(), floors = times_new(), warm = times_new();
	uint64_t end_ns;
	pid_t reader = 0;

	if (argc < 3 || !kymo_enabled()) {
		fprintf(stderr, "usage: KYMO=on latency LABEL SECONDS [READER ARGUMENT…]\n");
		return 2;
	}
	time_zones(&warm);
	if (argc > 3)
		reader = start_reader(argv + 3, bench_recording());
	end_ns = bench_now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	while (bench_now_ns() < end_ns) {
		time_zones(&zones);
		time_floor(&floors, &floor);
	}
	if (reader > 0)
		end_reader(reader, argv[1]);
	emit(argv[1], "zone", &zones, ns_per_tick);
	emit(argv[1], "floor", &floors, ns_per_tick);
	return 0;
}
