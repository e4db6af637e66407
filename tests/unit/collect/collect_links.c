/* Processes that wait for each other: by who can end whose wait, and by real pipes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/run/autopsy_links.h"

static void two_that_wait_for_each_other_are_stuck(void **state)
{
	struct autopsy_link links[3] = { { .kind = AUTOPSY_LINK_READ, .wakers = { [1] = true } },
					 { .kind = AUTOPSY_LINK_CHILD, .wakers = { [0] = true } } };

	(void)state;
	assert_int_equal(autopsy_links_settle(links, 3), 2);
	links[0].wakers[2] = true; /* the third may write, too */
	assert_int_equal(autopsy_links_settle(links, 3), 0);
}

static void a_wait_for_an_unknown_process_may_end(void **state)
{
	struct autopsy_link links[2] = { { .kind = AUTOPSY_LINK_READ },
					 { .kind = AUTOPSY_LINK_CHILD, .wakers = { [0] = true } } };

	(void)state;
	assert_int_equal(autopsy_links_settle(links, 2), 0);
	links[0].wakers[0] = true; /* it has the only other end itself */
	assert_int_equal(autopsy_links_settle(links, 2), 2);
}

/* Reads one end and keeps none but the other end of the second pipe. */
static pid_t reader(const int *in, const int *out)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	close(in[1]);
	close(out[0]);
	_exit(read(in[0], &byte, 1) == 1);
}

static void readers_of_each_others_pipes_are_found(void **state)
{
	struct autopsy_link links[2];
	int one[2], two[2];
	size_t stuck = 0;
	pid_t a, b;

	(void)state;
	assert_int_equal(pipe(one) | pipe(two), 0);
	a = reader(one, two);
	b = reader(two, one);
	for (int i = 0; i < 500 && stuck != 2; i++) { /* until both have begun to read */
		memset(links, 0, sizeof(links));
		links[0].pid = a;
		links[1].pid = b;
		stuck = autopsy_links_find(links, 2);
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	}
	kill(a, SIGKILL);
	kill(b, SIGKILL);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	assert_int_equal(stuck, 2);
	assert_int_equal(links[0].kind, AUTOPSY_LINK_READ);
	assert_true(links[0].wakers[1] && !links[0].wakers[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_that_wait_for_each_other_are_stuck),
		cmocka_unit_test(a_wait_for_an_unknown_process_may_end),
		cmocka_unit_test(readers_of_each_others_pipes_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
