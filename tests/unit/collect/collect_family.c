/* The processes of a program, found by their numbers; and the pauses of looks that find nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "collect/host/family.h"
#include "collect/move/archive.h"

static pid_t begin_child(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void begin_family(struct family *family)
{
	family_init(family);
	assert_int_equal(family_root(family, getpid(), paths_starttime(getpid()), "test"), 0);
}

static const struct family_member *member_of(const struct family *family, pid_t pid)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->members[i].pid == pid)
			return &family->members[i];
	return NULL;
}

static void children_are_found_and_ended_ones_are_marked(void **state)
{
	struct family family;
	pid_t child;

	(void)state;
	begin_family(&family);
	child = begin_child();
	family_look(&family);
	assert_int_equal(family.count, 2);
	assert_false(member_of(&family, child)->gone);
	family_look(&family);
	assert_int_equal(family.count, 2);
	end_child(child);
	family_look(&family);
	assert_true(member_of(&family, child)->gone);
	family_fini(&family);
}

/* More than are tried one by one: /proc is listed. */
static void a_child_among_many_new_processes_is_found(void **state)
{
	struct family family;
	pid_t child;

	(void)state;
	begin_family(&family);
	child = begin_child();
	for (int i = 0; i < 150; i++) {
		pid_t other = fork();

		if (!other)
			_exit(0);
		assert_int_equal(waitpid(other, NULL, 0), other);
	}
	family_look(&family);
	assert_int_equal(family.count, 2);
	assert_non_null(member_of(&family, child));
	end_child(child);
	family_fini(&family);
}

/* As for `kymo attach`, which knows no number of before. */
static void without_a_last_pid_all_processes_are_read(void **state)
{
	pid_t child = begin_child();
	struct family family;

	(void)state;
	begin_family(&family);
	family.last_pid = 0;
	family_look(&family);
	assert_non_null(member_of(&family, child));
	end_child(child);
	family_fini(&family);
}

static void *wait_for_end(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* Numbers of threads are among those of processes, and the parent of a thread is that of its
   process: in a child, whose parent is the program. */
static void threads_of_a_child_are_no_processes(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct family family;
	int ready[2];
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	begin_family(&family);
	child = fork();
	if (!child) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 5; i++)
			if (pthread_create(&thread, NULL, wait_for_end, &lock))
				_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	family_look(&family);
	assert_int_equal(family.count, 2);
	assert_non_null(member_of(&family, child));
	end_child(child);
	close(ready[0]);
	close(ready[1]);
	family_fini(&family);
}

/* ---- the live directory ---------------------------------------------------------------------- */

static void a_process_that_begins_after_a_long_pause_is_noticed(void **state)
{
	char live[] = "/tmp/kymo-test-live-XXXXXX", name[64];
	struct budget budget = { 1ull << 30, 1ull << 30 };
	struct archive archive;
	int fd, pause_ms = 0;

	(void)state;
	assert_non_null(mkdtemp(live));
	fd = open(live, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	archive_init(&archive, fd, fd, &budget);
	for (int i = 0; i < 20; i++)
		pause_ms = archive_pass(&archive);
	assert_int_equal(archive.process_count, 0);
	assert_in_range(pause_ms, 100, 1000);
	usleep(250000); /* the time of the directory is then known to be old */
	archive_pass(&archive);
	snprintf(name, sizeof(name), "p%d-1", (int)getpid());
	assert_int_equal(mkdirat(fd, name, 0700), 0);
	assert_int_equal(archive_pass(&archive), 100);
	assert_int_equal(archive.process_count, 1);
	archive_fini(&archive);
	assert_int_equal(unlinkat(fd, name, AT_REMOVEDIR), 0);
	close(fd);
	assert_int_equal(rmdir(live), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_are_found_and_ended_ones_are_marked),
		cmocka_unit_test(a_child_among_many_new_processes_is_found),
		cmocka_unit_test(without_a_last_pid_all_processes_are_read),
		cmocka_unit_test(threads_of_a_child_are_no_processes),
		cmocka_unit_test(a_process_that_begins_after_a_long_pause_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
