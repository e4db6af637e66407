/* What a thread waits for: by its system call and its descriptor, its Python functions, the
   kernel's function, and the figures of the scheduler. Descriptors are those of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/wait/wait_kind.h"
#include "collect/wait/wait_sample.h"

static struct wait_answer of_call(long number, uint64_t a, uint64_t b)
{
	struct wait_call call = { .number = number, .argument = { a, b } };
	struct wait_peers peers = { .next = 0 };
	struct wait_answer answer;

	wait_kind_of_call(getpid(), &call, &peers, &answer);
	return answer;
}

static void assert_answer(struct wait_answer answer, enum wait_kind kind, const char *target)
{
	assert_string_equal(wait_kind_word(answer.kind), wait_kind_word(kind));
	assert_string_equal(answer.target, target);
}

/* A connected pair of sockets on this host; the peer's address as text. */
static int connected(int *out_server, int *out_other, char *out_peer, size_t room)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	int one = socket(AF_INET, SOCK_STREAM, 0);

	*out_server = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*out_server, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(*out_server, 1), 0);
	assert_int_equal(getsockname(*out_server, (struct sockaddr *)&address, &bytes), 0);
	assert_int_equal(connect(one, (struct sockaddr *)&address, bytes), 0);
	*out_other = accept(*out_server, NULL, NULL);
	snprintf(out_peer, room, "127.0.0.1:%d", ntohs(address.sin_port));
	return one;
}

static void a_descriptor_decides_what_a_read_waits_for(void **state)
{
	int pipes[2], file = open("/proc/self/exe", O_RDONLY);
	char path[WAIT_TARGET_BYTES] = "";

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_answer(of_call(SYS_read, (uint64_t)pipes[0], 0), WAIT_PIPE, "");
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_answer(of_call(SYS_read, (uint64_t)file, 0), WAIT_DISK, path);
	assert_answer(of_call(SYS_flock, (uint64_t)file, 0), WAIT_LOCK, path);
	assert_answer(of_call(SYS_fsync, (uint64_t)file, 0), WAIT_DISK, path);
	assert_answer(of_call(SYS_read, 99999, 0), WAIT_OTHER, ""); /* not open */
	close(file);
	close(pipes[0]);
	close(pipes[1]);
}

/* Refuses calls that ask the server of a remote file, which may not answer: stat(), and statx()
   without AT_STATX_DONT_SYNC. */
static void refuse_remote_looks(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_STATX_DONT_SYNC, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void a_file_whose_server_is_gone_is_not_asked_for(void **state)
{
	int status = 0, file = open("/proc/self/exe", O_RDONLY);
	pid_t child = fork();

	(void)state;
	if (!child) {
		refuse_remote_looks();
		_exit(of_call(SYS_read, (uint64_t)file, 0).kind);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), WAIT_DISK);
	close(file);
}

static void a_socket_has_its_peer(void **state)
{
	char peer[64], listening[96];
	int server, other, one = connected(&server, &other, peer, sizeof(peer));
	struct pollfd polled[2] = { { .fd = -1 }, { .fd = one } };
	struct epoll_event event = { .events = EPOLLIN };
	int events = epoll_create1(0);

	(void)state;
	snprintf(listening, sizeof(listening), "listening on %s", peer);
	assert_answer(of_call(SYS_recvfrom, (uint64_t)one, 0), WAIT_SOCKET, peer);
	assert_answer(of_call(SYS_ppoll, (uint64_t)(uintptr_t)polled, 2), WAIT_SOCKET, peer);
	assert_answer(of_call(SYS_accept4, (uint64_t)server, 0), WAIT_SOCKET, listening);
	assert_answer(of_call(SYS_epoll_pwait, (uint64_t)events, 0), WAIT_OTHER, "events");
	assert_int_equal(epoll_ctl(events, EPOLL_CTL_ADD, one, &event), 0);
	assert_answer(of_call(SYS_epoll_pwait, (uint64_t)events, 0), WAIT_SOCKET, peer);
	close(events);
	close(one);
	close(other);
	close(server);
}

static void calls_without_a_descriptor(void **state)
{
	(void)state;
	assert_answer(of_call(SYS_clock_nanosleep, 1, 1), WAIT_SLEEP, "");
	assert_answer(of_call(SYS_ppoll, 0, 0), WAIT_SLEEP, "");
	assert_answer(of_call(SYS_futex, 4096, 0), WAIT_LOCK, "");
	assert_answer(of_call(SYS_wait4, (uint64_t)-1, 0), WAIT_CHILD, "");
	assert_answer(of_call(SYS_rt_sigsuspend, 0, 0), WAIT_OTHER, "");
	/* wild arguments */
	assert_answer(of_call(SYS_ppoll, 8, UINT64_MAX), WAIT_OTHER, "");
	assert_answer(of_call(SYS_pselect6, UINT64_MAX, 8), WAIT_OTHER, "");
	assert_answer(of_call(SYS_read, UINT64_MAX, 0), WAIT_OTHER, "");
}

static void functions_tell_more(void **state)
{
	const struct wait_frame queue[] = { { "Condition.wait",
					      "/usr/lib/python3.11/threading.py" },
					    { "Queue.get", "/usr/lib/python3.11/queue.py" },
					    { "work", "/home/a/work.py" } };
	const struct wait_frame reduce[] = {
		{ "all_reduce", "/x/torch/distributed/distributed_c10d.py" }, { "f", "a.py" }
	};
	const struct wait_frame own[] = { { "all_reduce", "/home/a/mine.py" } };
	const struct wait_frame own_lock[] = {
		{ "lookup", "/home/a/work.py" },
		{ "_WorkItem.run", "/usr/lib/python3.11/concurrent/futures/thread.py" },
		{ "_worker", "/usr/lib/python3.11/concurrent/futures/thread.py" }
	};
	struct wait_answer answer = { WAIT_LOCK, "" };

	(void)state;
	wait_kind_refine(queue, 3, &answer);
	assert_answer(answer, WAIT_LOCK, "a queue");
	wait_kind_refine(reduce, 2, &answer);
	assert_answer(answer, WAIT_COLLECTIVE, "all_reduce");
	answer = (struct wait_answer){ WAIT_LOCK, "" };
	wait_kind_refine(own, 1, &answer);
	assert_answer(answer, WAIT_LOCK, "");
	/* its own lock, in a worker of a pool: not the queue of the pool */
	wait_kind_refine(own_lock, 3, &answer);
	assert_answer(answer, WAIT_LOCK, "");
	wait_kind_refine(own_lock + 1, 2, &answer);
	assert_answer(answer, WAIT_LOCK, "a queue");
	answer = (struct wait_answer){ WAIT_GIL, "" };
	wait_kind_refine(queue, 3, &answer);
	assert_answer(answer, WAIT_GIL, "");
}

static void without_a_call_the_kernels_function_decides(void **state)
{
	(void)state;
	assert_int_equal(wait_kind_of_channel("hrtimer_nanosleep"), WAIT_SLEEP);
	assert_int_equal(wait_kind_of_channel("futex_wait_queue"), WAIT_LOCK);
	assert_int_equal(wait_kind_of_channel("0"), WAIT_OTHER);
	assert_int_equal(wait_kind_of_state('D'), WAIT_DISK);
	assert_int_equal(wait_kind_of_state('t'), WAIT_STOPPED);
}

#define MS 1000000u

static void a_thread_without_a_core_is_ready(void **state)
{
	struct wait_sample before = {
		.run_ns = 100 * MS, .delay_ns = 5 * MS, .ran = true, .schedule_ns = 1000 * MS
	};

	(void)state;
	assert_false(wait_sample_is_ready(&before, 110 * MS, 5 * MS, 1010 * MS));
	assert_true(wait_sample_is_ready(&before, 102 * MS, 13 * MS, 1010 * MS));
	assert_true(
		wait_sample_is_ready(&before, 100 * MS, 5 * MS, 1010 * MS)); /* not yet counted */
	before.ran = false; /* it slept until now */
	assert_false(wait_sample_is_ready(&before, 100 * MS, 5 * MS, 1010 * MS));
	before.schedule_ns = 0;
	assert_false(wait_sample_is_ready(&before, 102 * MS, 13 * MS, 1010 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_descriptor_decides_what_a_read_waits_for),
		cmocka_unit_test(a_file_whose_server_is_gone_is_not_asked_for),
		cmocka_unit_test(a_socket_has_its_peer),
		cmocka_unit_test(calls_without_a_descriptor),
		cmocka_unit_test(functions_tell_more),
		cmocka_unit_test(without_a_call_the_kernels_function_decides),
		cmocka_unit_test(a_thread_without_a_core_is_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
