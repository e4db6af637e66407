#include "collect/run/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/host/proc.h"

#define ANSWER_MS 200
#define SENDING_NS 1000000 /* a sender may not have reached all processes of the group yet */

struct question {
	uint32_t number;
	int32_t signal_number;
	int32_t got;
};

/* Inherited descriptors are pipes and files of the program and must not be kept open here. */
static void close_all_but(int fd)
{
	if (fd > 0)
		close_range(0, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0u, 0);
}

/* `pkill kymo`, and `pkill -f` with our command line, must match kymo but not this process. So it
   has neither the name nor the command line of kymo. */
static void clear_identity(void)
{
	char text[1024];
	char *at = NULL;
	unsigned long start, end;

	prctl(PR_SET_NAME, "witness");
	if (proc_read("/proc/self/stat", text, sizeof(text)) > 0)
		at = strrchr(text, ')');
	for (int field = 2; at && field < 48; field++)
		at = strchr(at + 1, ' ');
	/* Fields 48 and 49: the address range of the command line in our memory. */
	if (at && sscanf(at, "%lu %lu", &start, &end) == 2 && start && end > start)
		memset((char *)start, 0, end - start);
}

/* Ends when the other end of the socket is closed. */
static void serve_questions(int fd)
{
	struct timespec at_once = { 0, 0 };
	struct question question;
	sigset_t one;

	close_all_but(fd);
	clear_identity();
	while (recv(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question)) {
		sigemptyset(&one);
		sigaddset(&one, question.signal_number);
		question.got = sigtimedwait(&one, NULL, &at_once) == question.signal_number;
		if (send(fd, &question, sizeof(question), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

void witness_start(struct witness *witness)
{
	int ends[2];

	memset(witness, 0, sizeof(*witness));
	witness->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	witness->pid = fork();
	if (witness->pid == 0) {
		close(ends[0]);
		serve_questions(ends[1]);
	}
	close(ends[1]);
	if (witness->pid > 0)
		witness->fd = ends[0];
	else
		close(ends[0]);
}

static bool witness_receive(struct witness *witness, struct question *answer)
{
	struct pollfd poll_fd = { .fd = witness->fd, .events = POLLIN };

	/* A late answer to an earlier question may still be queued. */
	while (poll(&poll_fd, 1, ANSWER_MS) > 0) {
		if (recv(witness->fd, answer, sizeof(*answer), 0) != (ssize_t)sizeof(*answer))
			return false;
		if (answer->number == witness->question)
			return true;
	}
	return false;
}

enum witness_answer witness_got(struct witness *witness, int signal_number)
{
	struct timespec sending = { 0, SENDING_NS };
	struct question question = { .number = ++witness->question,
				     .signal_number = signal_number };

	if (witness->fd < 0)
		return WITNESS_SILENT;
	nanosleep(&sending, NULL);
	if (send(witness->fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
	    !witness_receive(witness, &question))
		return WITNESS_SILENT;
	return question.got ? WITNESS_YES : WITNESS_NO;
}

void witness_end(struct witness *witness)
{
	if (witness->fd < 0)
		return;
	close(witness->fd);
	witness->fd = -1;
	kill(witness->pid, SIGKILL);
	while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
		;
}
