/* What vaccel_prof.h promises, as a program: vaccel_checks NAME [COUNT]. Silent and 0, or the line
   that does not hold. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vaccel_prof.h>

#define HOLDS(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

static struct vaccel_prof_region fixed = VACCEL_PROF_REGION_INIT("fixed");

/* "… total_time: N …" of one region, by the buffer form. */
static unsigned long long total_of(const struct vaccel_prof_region *region)
{
	unsigned long long total = 0;
	char *line = NULL;

	if (vaccel_prof_regions_print_all_to_buf(&line, 1024, region, 1) == 1)
		HOLDS(sscanf(strstr(line, "total_time: "), "total_time: %llu nsec", &total) == 1);
	free(line);
	return total;
}

static void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

static void use(struct vaccel_prof_region *region)
{
	HOLDS(vaccel_prof_region_start(region) == 0);
	HOLDS(vaccel_prof_region_stop(region) == 0);
}

static void recurse(int depth)
{
	HOLDS(vaccel_prof_region_start(&fixed) == 0);
	if (depth > 1)
		recurse(depth - 1);
	else
		sleep_ms(20);
	HOLDS(vaccel_prof_region_stop(&fixed) == 0);
}

/* Each of the three holds the innermost 20 ms. */
static void recursion(long count)
{
	(void)count;
	recurse(3);
	HOLDS(fixed.nr_entries == 3);
	HOLDS(total_of(&fixed) >= 60000000 && total_of(&fixed) < 60000000000);
	recurse(20000);
	HOLDS(fixed.nr_entries == 20003);
	HOLDS(vaccel_prof_region_stop(&fixed) == ENOENT);
}

static void nesting(long count)
{
	struct vaccel_prof_region a = VACCEL_PROF_REGION_INIT("same");
	struct vaccel_prof_region b = VACCEL_PROF_REGION_INIT("same");

	(void)count;
	HOLDS(!vaccel_prof_region_start(&a));
	HOLDS(!vaccel_prof_region_start(&b));
	HOLDS(!vaccel_prof_region_stop(&a)); /* before b, which has the same name */
	HOLDS(a.nr_entries == 1 && b.nr_entries == 0);
	sleep_ms(20);
	HOLDS(!vaccel_prof_region_stop(&b));
	HOLDS(b.nr_entries == 1);
	HOLDS(total_of(&b) >= 20000000 && total_of(&a) < total_of(&b));
	HOLDS(vaccel_prof_region_stop(&a) == ENOENT);
	HOLDS(!vaccel_prof_region_destroy(&a) && !vaccel_prof_region_destroy(&b));
}

static void *worker(void *context)
{
	long count = *(long *)context;

	for (long i = 0; i < count; i++)
		use(&fixed);
	return NULL;
}

static void threads(long count)
{
	pthread_t all[8];

	for (int round = 1; round <= 5; round++) {
		for (int i = 0; i < 8; i++)
			HOLDS(!pthread_create(&all[i], NULL, worker, &count));
		for (int i = 0; i < 8; i++)
			pthread_join(all[i], NULL);
		/* Without a call: they have ended. */
		HOLDS(fixed.nr_entries == (size_t)(8 * count * round + round - 1));
		use(&fixed);
		HOLDS(fixed.nr_entries == (size_t)(8 * count * round + round));
	}
	vaccel_prof_region_print(&fixed);
}

static void *many_once(void *context)
{
	pthread_barrier_t *all_there = context;

	pthread_barrier_wait(all_there);
	use(&fixed);
	pthread_barrier_wait(all_there);
	return NULL;
}

/* More threads alive at once than a slot has shards. */
static void crowd(long count)
{
	pthread_barrier_t all_there;
	pthread_t all[200];

	(void)count;
	pthread_barrier_init(&all_there, NULL, 200);
	for (int i = 0; i < 200; i++)
		HOLDS(!pthread_create(&all[i], NULL, many_once, &all_there));
	for (int i = 0; i < 200; i++)
		pthread_join(all[i], NULL);
	HOLDS(fixed.nr_entries == 200);
}

static int stop_clearing;

static void *clear_all_the_time(void *context)
{
	(void)context;
	while (!__atomic_load_n(&stop_clearing, __ATOMIC_RELAXED)) {
		vaccel_prof_regions_clear(&fixed, 1);
		total_of(&fixed);
	}
	return NULL;
}

static void *destroy_all_the_time(void *context)
{
	struct vaccel_prof_region *region = context;

	while (!__atomic_load_n(&stop_clearing, __ATOMIC_RELAXED)) {
		vaccel_prof_region_init(region, "raced");
		vaccel_prof_region_destroy(region);
	}
	return NULL;
}

static void *start_and_stop(void *context)
{
	for (int i = 0; i < 200000; i++) {
		vaccel_prof_region_start(context);
		vaccel_prof_region_stop(context);
	}
	return NULL;
}

/* Nobody crashes and nothing is left behind; after it, all counts are exact again. */
static void races(long count)
{
	static struct vaccel_prof_region raced = VACCEL_PROF_REGION_INIT("raced");
	struct vaccel_prof_region *of[2] = { &fixed, &raced };
	void *(*disturb[2])(void *) = { clear_all_the_time, destroy_all_the_time };
	pthread_t one, two, disturber;

	(void)count;
	for (int i = 0; i < 2; i++) {
		stop_clearing = 0;
		pthread_create(&disturber, NULL, disturb[i], of[i]);
		pthread_create(&one, NULL, start_and_stop, of[i]);
		pthread_create(&two, NULL, start_and_stop, of[i]);
		pthread_join(one, NULL);
		pthread_join(two, NULL);
		__atomic_store_n(&stop_clearing, 1, __ATOMIC_RELAXED);
		pthread_join(disturber, NULL);
	}
	vaccel_prof_regions_clear(&fixed, 1);
	HOLDS(fixed.nr_entries == 0 && total_of(&fixed) == 0);
	use(&fixed);
	HOLDS(fixed.nr_entries == 1);
}

static void clearing(long count)
{
	struct vaccel_prof_region two[2] = { VACCEL_PROF_REGION_INIT("first"),
					     VACCEL_PROF_REGION_INIT("second") };

	(void)count;
	for (int i = 0; i < 5000; i++)
		use(&two[i & 1]);
	HOLDS(!vaccel_prof_regions_clear(two, 2));
	HOLDS(two[0].nr_entries == 0 && total_of(&two[0]) == 0);
	HOLDS(!strcmp(two[1].name, "second"));
	HOLDS(!vaccel_prof_regions_print_all(two, 2)); /* no line */
	for (int i = 0; i < 1500; i++)
		use(&two[0]);
	HOLDS(two[0].nr_entries == 1500);
	/* What was open does not count, but its stop is right. */
	HOLDS(!vaccel_prof_region_start(&two[0]));
	HOLDS(!vaccel_prof_regions_clear(two, 2));
	HOLDS(!vaccel_prof_region_stop(&two[0]));
	HOLDS(two[0].nr_entries == 0 && total_of(&two[0]) == 0);
	HOLDS(!vaccel_prof_regions_release(two, 2) && !vaccel_prof_regions_clear(two, 2));
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

static void starts(long count)
{
	long before = 0;

	for (long i = 0; i < count; i++) {
		use(&fixed);
		if (i == 20000)
			before = resident_kib();
	}
	HOLDS(fixed.nr_entries == (size_t)count);
	HOLDS(resident_kib() - before < 1024);
}

/* A region on the stack, as the example of vAccel's documentation has it; each second one is never
   destroyed. */
static void cycles(long count)
{
	long before = 0;

	for (long i = 0; i < count; i++) {
		struct vaccel_prof_region region;

		HOLDS(!vaccel_prof_region_init(&region, "cycle"));
		use(&region);
		HOLDS(region.nr_entries == 1);
		HOLDS(!vaccel_prof_region_print(&region));
		if (i & 1)
			HOLDS(!vaccel_prof_region_destroy(&region));
		if (i == 20000)
			before = resident_kib();
	}
	HOLDS(resident_kib() - before < 1024);
}

/* Static, never destroyed, at one address again and again: its slot is found again. */
static void statics(long count)
{
	long before = 0;

	for (long i = 0; i < count; i++) {
		struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("static cycle");

		use(&region);
		HOLDS(region.nr_entries == 1);
		if (i == 20000)
			before = resident_kib();
	}
	HOLDS(resident_kib() - before < 1024);
}

static void init_and_destroy(long count)
{
	struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("static");
	char longer[1000], text[] = "copied";

	(void)count;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	HOLDS(!vaccel_prof_region_destroy(&region) && !vaccel_prof_region_destroy(&region));
	HOLDS(!strcmp(region.name, "static"));
	HOLDS(!vaccel_prof_region_init(&region, text));
	text[0] = 'X';
	HOLDS(!strcmp(region.name, "copied") && region.name_owned);
	use(&region);
	HOLDS(!vaccel_prof_region_init(&region, region.name)); /* over itself */
	HOLDS(!strcmp(region.name, "copied") && region.nr_entries == 0);
	HOLDS(!vaccel_prof_region_init(&region, longer) && !strcmp(region.name, longer));
	HOLDS(!vaccel_prof_region_init(&region, NULL));
	memset((char *)region.name, 'y', 255); /* the caller's to fill */
	HOLDS(strlen(region.name) == 255);
	use(&region);
	HOLDS(!vaccel_prof_region_release(&region) && !vaccel_prof_region_release(&region));
	memset((void *)&region, 0xa5, sizeof(region)); /* memory that nobody initialised */
	HOLDS(!vaccel_prof_region_init(&region, "fresh"));
	use(&region);
	HOLDS(region.nr_entries == 1 && !vaccel_prof_region_destroy(&region));
}

static void arguments(long count)
{
	char *buf = NULL;

	(void)count;
	HOLDS(vaccel_prof_region_start(NULL) == EINVAL && vaccel_prof_region_stop(NULL) == EINVAL);
	HOLDS(vaccel_prof_region_print(NULL) == EINVAL);
	HOLDS(vaccel_prof_region_init(NULL, "x") == EINVAL);
	HOLDS(vaccel_prof_region_destroy(NULL) == EINVAL);
	HOLDS(vaccel_prof_region_stop(&fixed) == ENOENT);
	HOLDS(vaccel_prof_regions_init(NULL, 1) == EINVAL);
	HOLDS(vaccel_prof_regions_clear(NULL, 1) == EINVAL);
	HOLDS(vaccel_prof_regions_print_all(NULL, 1) == EINVAL);
	HOLDS(vaccel_prof_regions_print_all_to_buf(&buf, 10, NULL, 1) == -EINVAL);
}

static void by_name(long count)
{
	struct vaccel_prof_region all[3];
	char *buf = NULL;
	int need;

	(void)count;
	HOLDS(!vaccel_prof_regions_init(all, 3));
	for (int i = 0; i < 3; i++)
		strcpy((char *)all[i].name, i < 2 ? "pair" : "single");
	HOLDS(!vaccel_prof_regions_start_by_name(all, 3, "pair"));
	HOLDS(vaccel_prof_regions_start_by_name(all, 3, "nobody") == EINVAL);
	HOLDS(vaccel_prof_regions_start_by_name(all, 3, NULL) == EINVAL);
	HOLDS(vaccel_prof_regions_stop_by_name(all, 3, "single") == ENOENT);
	HOLDS(!vaccel_prof_regions_stop_by_name(all, 3, "pair"));
	HOLDS(all[0].nr_entries == 1 && all[1].nr_entries == 1 && all[2].nr_entries == 0);
	need = vaccel_prof_regions_print_all_to_buf(NULL, 0, all, 3);
	HOLDS(vaccel_prof_regions_print_all_to_buf(&buf, (size_t)need, all, 3) == 2);
	HOLDS(!strncmp(buf, "[prof] pair: total_time: ", 25));
	HOLDS(!strcmp(buf + strlen(buf) - 20, " nsec nr_entries: 1") ||
	      strstr(buf, " nsec nr_entries: 1"));
	HOLDS(!strncmp(buf + strlen(buf) + 1, "[prof] pair: total_time: ", 25));
	HOLDS(strlen(buf) + 1 + strlen(buf + strlen(buf) + 1) + 1 == (size_t)need);
	free(buf);
	HOLDS(vaccel_prof_regions_print_all_to_buf(&buf, 10, all, 3) == 1);
	HOLDS(!strcmp(buf, "[prof] pa")); /* cut, ended by NUL */
	free(buf);
	HOLDS(!vaccel_prof_regions_release(all, 3));
}

static int returns_early(int early)
{
	vaccel_prof_region_start(&fixed);
	if (early)
		return -1;
	vaccel_prof_region_stop(&fixed);
	return 0;
}

/* The second call's stop ends the second call's start. */
static void early_return(long count)
{
	(void)count;
	returns_early(1);
	HOLDS(fixed.nr_entries == 0 && total_of(&fixed) == 0);
	sleep_ms(50);
	returns_early(0);
	HOLDS(fixed.nr_entries == 1);
	HOLDS(total_of(&fixed) < 50000000);
}

static void *use_once_and_wait(void *context)
{
	use(&fixed);
	pthread_barrier_wait(context); /* has used it */
	pthread_barrier_wait(context); /* the fork is over */
	return NULL;
}

/* While another thread of the parent is in the region's books. */
static void forks(long count)
{
	pthread_barrier_t both;
	pthread_t other;
	int status;
	pid_t child;

	(void)count;
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&other, NULL, use_once_and_wait, &both);
	pthread_barrier_wait(&both);
	HOLDS(!vaccel_prof_region_start(&fixed));
	child = fork();
	HOLDS(child >= 0);
	if (child == 0) {
		HOLDS(vaccel_prof_region_stop(&fixed) == ENOENT); /* begun in another process */
		for (int i = 0; i < 10; i++)
			use(&fixed);
		HOLDS(fixed.nr_entries == 11); /* the parent's one too: memory is inherited */
		_exit(0);
	}
	pthread_barrier_wait(&both);
	pthread_join(other, NULL);
	HOLDS(!vaccel_prof_region_stop(&fixed));
	HOLDS(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	HOLDS(fixed.nr_entries == 2);
}

static void print_fixed(void)
{
	vaccel_prof_region_print(&fixed);
}

static void at_exit(long count)
{
	(void)count;
	atexit(print_fixed);
	use(&fixed);
	fputs("before ", stdout);
	HOLDS(!vaccel_prof_region_start(&fixed));
	exit(0); /* inside a region */
}

static void off(long count)
{
	struct vaccel_prof_region region;
	char *buf = NULL;

	(void)count;
	HOLDS(!vaccel_prof_enabled());
	HOLDS(!vaccel_prof_region_start(NULL) && !vaccel_prof_region_stop(NULL));
	HOLDS(!vaccel_prof_region_stop(&fixed) && !vaccel_prof_region_print(&fixed));
	HOLDS(!vaccel_prof_regions_start_by_name(&fixed, 1, "nobody"));
	HOLDS(!vaccel_prof_regions_print_all_to_buf(&buf, 10, &fixed, 1) && !buf);
	HOLDS(!vaccel_prof_regions_init(&region, 1));
	strcpy((char *)region.name, "filled all the same");
	use(&region);
	HOLDS(region.nr_entries == 0 && !vaccel_prof_region_destroy(&region));
}

static void lines(long count)
{
	for (long i = 0; i < count; i++) {
		use(&fixed);
		vaccel_prof_region_print(&fixed);
	}
}

static const struct check {
	const char *name;
	void (*run)(long count);
} checks[] = {
	{ "recursion", recursion },
	{ "nesting", nesting },
	{ "threads", threads },
	{ "crowd", crowd },
	{ "races", races },
	{ "clearing", clearing },
	{ "starts", starts },
	{ "cycles", cycles },
	{ "statics", statics },
	{ "init_and_destroy", init_and_destroy },
	{ "arguments", arguments },
	{ "by_name", by_name },
	{ "early_return", early_return },
	{ "forks", forks },
	{ "at_exit", at_exit },
	{ "off", off },
	{ "lines", lines },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].name, argv[1])) {
			checks[i].run(argc > 2 ? atol(argv[2]) : 1000);
			return 0;
		}
	fprintf(stderr, "usage: vaccel_checks NAME [COUNT]\n");
	return 2;
}
