/* What belongs to the program stays the program's: handlers, masks, timers, errno (FAULTS 11,
   12). */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <kymo/atomic.h>

#include "recorded.h"

#define SIGNALS 65

/* All of a process that signals have to do with. */
struct owned {
	struct sigaction action[SIGNALS];
	sigset_t mask;
	stack_t stack;
	struct itimerval interval[3];
};

static void look(struct owned *owned)
{
	memset(owned, 0, sizeof(*owned));
	for (int i = 1; i < SIGNALS; i++)
		sigaction(i, NULL, &owned->action[i]);
	sigprocmask(SIG_SETMASK, NULL, &owned->mask);
	sigaltstack(NULL, &owned->stack);
	for (int i = 0; i < 3; i++) {
		getitimer((__itimer_which_t)i, &owned->interval[i]);
		timerclear(&owned->interval[i].it_value); /* runs on */
	}
}

static int same(const struct owned *a, const struct owned *b)
{
	for (int i = 1; i < SIGNALS; i++)
		if (a->action[i].sa_handler != b->action[i].sa_handler ||
		    a->action[i].sa_flags != b->action[i].sa_flags ||
		    memcmp(&a->action[i].sa_mask, &b->action[i].sa_mask, 8))
			return 0;
	return !memcmp(&a->mask, &b->mask, 8) && a->stack.ss_sp == b->stack.ss_sp &&
	       a->stack.ss_flags == b->stack.ss_flags &&
	       !memcmp(a->interval, b->interval, sizeof(a->interval));
}

/* Of our own, since the test needs them in the child alone: what each handler saw. */
static uint64_t seen[SIGNALS];
static sigjmp_buf after_the_fault;

static void own_handler(int number)
{
	kymo__fetch_add_relaxed(&seen[number], 1);
	KYMO_SCOPE("in a handler");
	if (number == SIGSEGV)
		siglongjmp(after_the_fault, 1);
}

static void own_all(void)
{
	static const int ours[] = { SIGPROF, SIGUSR1, SIGUSR2, SIGSEGV, SIGBUS, SIGXFSZ };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		struct sigaction action = { .sa_handler = own_handler,
					    .sa_flags = i % 2 ? SA_RESTART : 0 };

		sigaddset(&action.sa_mask, SIGALRM);
		sigaction(ours[i], &action, NULL);
	}
	setitimer(ITIMER_PROF, &often, NULL);
}

static void *record_in_thread(void *unused)
{
	struct owned before, after;

	look(&before);
	for (int i = 0; i < 20000; i++) {
		KYMO_SCOPE("in a thread");
	}
	look(&after);
	kymo__fetch_add_relaxed(&shared_counts()[7], (uint64_t)!same(&before, &after));
	return unused;
}

static void everything_kymo_does(void)
{
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, record_in_thread, NULL);
	for (int i = 0; i < 1000; i++) {
		KYMO_SCOPE("main");
		kymo_mark("mark", "text");
		kymo_counter("counter", i);
		kymo_step(NULL);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	kymo_disable();
	kymo_enable(NULL);
	kymo_snapshot("/dev/null/impossible", NULL);
}

static void owns_its_signals(void)
{
	struct owned before, after;
	volatile char *nowhere = NULL;

	own_all();
	look(&before);
	everything_kymo_does();
	/* SIGPROF counts the program's own time: until it has come, there is more to do. */
	while (!kymo__load_relaxed(&seen[SIGPROF]))
		everything_kymo_does();
	raise(SIGUSR1);
	raise(SIGUSR2);
	if (!sigsetjmp(after_the_fault, 1)) {
		KYMO_SCOPE("faulty");
		nowhere = (volatile char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
						-1, 0);
		*nowhere = 1;
	}
	{
		KYMO_SCOPE("after the fault");
	}
	look(&after);
	shared_counts()[0] = (uint64_t)same(&before, &after);
	for (int i = 0; i < 4; i++)
		shared_counts()[i + 1] = (uint64_t)
			seen[(int[]){ SIGPROF, SIGUSR1, SIGUSR2, SIGSEGV }[i]];
}

static void handlers_masks_and_timers_are_the_programs(void **state)
{
	(void)state;
	struct recording *recording = recorded(owns_its_signals, NULL);

	assert_int_equal(shared_counts()[0], 1);
	assert_true(shared_counts()[1] >= 1);
	assert_int_equal(shared_counts()[2], 1);
	assert_int_equal(shared_counts()[3], 1);
	assert_int_equal(shared_counts()[4], 1);
	assert_int_equal(shared_counts()[7], 0);
	recorded_close(recording);
}

static void a_jump_out_of_a_faulty_zone_leaves_the_next_ones_right(void **state)
{
	(void)state;
	struct recording *recording = recorded(owns_its_signals, NULL);
	uint64_t after = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_total *total = total_of(recording, &recording->streams[i],
							   "after the fault");

		after += total ? total->count : 0;
	}
	assert_int_equal(after, 1);
	recorded_close(recording);
}

/* ---- 12 ---- */

static sem_t never;
static int quiet[2], closing[2];

static void *waits_in_system_calls(void *unused)
{
	struct timespec until;
	struct pollfd one = { quiet[0], POLLIN, 0 };
	char byte;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	shared_counts()[1] += poll(&one, 1, 200) != 0;
	shared_counts()[2] += nanosleep(&(struct timespec){ 0, 200000000 }, NULL) != 0;
	shared_counts()[3] += sem_timedwait(&never, &until) != -1 || errno != ETIMEDOUT;
	shared_counts()[4] += read(closing[0], &byte, 1) != 1; /* until all the others have ended */
	shared_counts()[0] = 1;
	return unused;
}

static void records_while_others_wait(void)
{
	pthread_t waiting;

	sem_init(&never, 0, 0);
	if (pipe(quiet) || pipe(closing))
		abort();
	pthread_create(&waiting, NULL, waits_in_system_calls, NULL);
	everything_kymo_does();
	if (write(closing[1], "x", 1) != 1)
		abort();
	pthread_join(waiting, NULL);
}

static void no_system_call_of_the_program_is_interrupted(void **state)
{
	(void)state;
	struct recording *recording = recorded(records_while_others_wait, NULL);

	assert_int_equal(shared_counts()[0], 1);
	for (int i = 1; i < 5; i++)
		assert_int_equal(shared_counts()[i], 0);
	recorded_close(recording);
}

/* ---- errno: a handler that records must not change it for the code below -------------------- */

static void errno_of_every_call(void)
{
	static struct kymo_region region = KYMO_REGION_INIT("region");
	static const struct kymo_column column = { "x", KYMO_I64, 0, 0, NULL };
	struct kymo_table *table = kymo_table_create("app.errno", &column, 1, 8, NULL);
	char name[32];

	for (int i = 0; i < 2000; i++) {
		int64_t row = i;

		errno = 4321;
		snprintf(name, sizeof(name), "name %d", i);
		kymo_counter(name, 1);
		kymo_mark("mark", name);
		kymo_region_start(&region);
		kymo_zone_text(name, strlen(name));
		kymo_region_stop(&region);
		kymo_table_append(table, &row);
		kymo_step(NULL);
		kymo_thread_name("main");
		shared_counts()[0] += errno != 4321;
	}
}

static void *first_row_of_a_thread(void *unused)
{
	errno = 4321;
	{
		KYMO_SCOPE("first");
	}
	shared_counts()[0] += errno != 4321;
	return unused;
}

static void errno_with_and_without_room(void)
{
	const struct rlimit nothing = { 1, RLIM_INFINITY };
	pthread_t thread;

	errno_of_every_call();
	setrlimit(RLIMIT_FSIZE, &nothing);
	errno_of_every_call();
	pthread_create(&thread, NULL, first_row_of_a_thread, NULL);
	pthread_join(thread, NULL);
	if (fork() == 0) {
		first_row_of_a_thread(NULL);
		_exit(0);
	}
	wait(NULL);
}

static void errno_stays_as_it_was(void **state)
{
	(void)state;
	struct recording *recording = recorded(errno_with_and_without_room, NULL);

	assert_int_equal(shared_counts()[0], 0);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handlers_masks_and_timers_are_the_programs),
		cmocka_unit_test(a_jump_out_of_a_faulty_zone_leaves_the_next_ones_right),
		cmocka_unit_test(no_system_call_of_the_program_is_interrupted),
		cmocka_unit_test(errno_stays_as_it_was),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
