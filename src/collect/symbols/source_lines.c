#include "collect/symbols/source_lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"

#define CHILD_FD 3
#define CHILD_MEMORY (4ull << 30) /* debug information of a large library is a gigabyte */

/* ---- start and end --------------------------------------------------------------------------- */

/* Nothing of the parent's stays open; the child ends with it and yields to everything else. */
__attribute__((noreturn)) static void become_child(int fd)
{
	const struct rlimit none = { 0, 0 }, memory = { CHILD_MEMORY, CHILD_MEMORY };

	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_AS, &memory);
	setpriority(PRIO_PROCESS, 0, 10);
	if (fd != CHILD_FD)
		dup2(fd, CHILD_FD);
	syscall(SYS_close_range, CHILD_FD + 1, ~0u, 0);
	source_lines_run(CHILD_FD);
}

static bool source_lines_start(struct source_lines *lines)
{
	int ends[2];

	if (lines->child)
		return true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		lines->failed = true;
		return false;
	}
	lines->child = fork();
	if (!lines->child)
		become_child(ends[1]);
	close(ends[1]);
	lines->fd = ends[0];
	if (lines->child < 0) {
		lines->child = 0;
		lines->failed = true;
		close(ends[0]);
	}
	return !lines->failed;
}

static void source_lines_end_child(struct source_lines *lines)
{
	if (!lines->child)
		return;
	kill(lines->child, SIGKILL);
	close(lines->fd);
	while (waitpid(lines->child, NULL, 0) < 0 && errno == EINTR)
		;
	lines->child = 0;
	lines->owed = 0;
	lines->failed = true;
}

void source_lines_stop(struct source_lines *lines)
{
	source_lines_end_child(lines);
	free(lines->sent);
	*lines = (struct source_lines){ .failed = true };
}

/* ---- questions ------------------------------------------------------------------------------- */

/* True if the child has no descriptor of this file yet. */
static bool is_new_file(struct source_lines *lines, uint32_t number)
{
	for (size_t i = 0; i < lines->sent_count; i++)
		if (lines->sent[i] == number)
			return false;
	if (grow((void **)&lines->sent, &lines->sent_room, lines->sent_count, sizeof(number)))
		lines->sent[lines->sent_count++] = number;
	return true;
}

static bool send_question(struct source_lines *lines, const struct source_question *question,
			  int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { (void *)question, sizeof(*question) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *head;

	if (is_new_file(lines, question->number)) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &fd, sizeof(int));
	}
	return sendmsg(lines->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)sizeof(*question);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answering {
	void (*each)(void *context, size_t index, const struct source_frame *frames, size_t count);
	void *context;
};

/* Returns false for an answer that does not fit its question. */
static bool source_lines_take_answer(const struct source_lines *lines,
				     const struct answering *answering, const char *bytes,
				     size_t count)
{
	struct source_frame frames[SOURCE_LINES_DEEPEST];
	struct source_answer_frame one;
	struct source_answer head;
	size_t texts;

	if (count < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.sequence != lines->sequence || head.index >= lines->asked ||
	    head.frame_count > SOURCE_LINES_DEEPEST ||
	    head.frame_count * sizeof(one) > count - sizeof(head))
		return false;
	texts = sizeof(head) + head.frame_count * sizeof(one);
	for (uint32_t i = 0; i < head.frame_count; i++) {
		memcpy(&one, bytes + sizeof(head) + i * sizeof(one), sizeof(one));
		if (one.func_bytes > count - texts ||
		    one.file_bytes > count - texts - one.func_bytes)
			return false;
		frames[i] = (struct source_frame){ bytes + texts, one.func_bytes,
						   bytes + texts + one.func_bytes, one.file_bytes,
						   one.line };
		texts += one.func_bytes + one.file_bytes;
	}
	answering->each(answering->context, head.index, frames, head.frame_count);
	return true;
}

static int ms_left(uint64_t deadline_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	return now_ns >= deadline_ns ? 0 : (int)((deadline_ns - now_ns) / 1000000) + 1;
}

/* The number of its bytes; 0: none until the deadline, or the child has ended. */
static size_t receive_answer(struct source_lines *lines, char *bytes, uint64_t deadline_ns)
{
	struct pollfd fd = { .fd = lines->fd, .events = POLLIN };
	ssize_t got;

	if (poll(&fd, 1, ms_left(deadline_ns)) <= 0)
		return 0;
	got = recv(lines->fd, bytes, SOURCE_ANSWER_MOST, MSG_DONTWAIT);
	if (got <= 0) {
		source_lines_end_child(lines);
		return 0;
	}
	lines->owed--;
	return (size_t)got;
}

/* Those that are owed. answering: NULL to skip them. */
static void receive_answers(struct source_lines *lines, const struct answering *answering,
			    uint64_t deadline_ns)
{
	char *bytes = lines->owed ? malloc(SOURCE_ANSWER_MOST) : NULL;

	while (bytes && lines->owed) {
		size_t got = receive_answer(lines, bytes, deadline_ns);

		if (!got)
			break;
		if (answering)
			source_lines_take_answer(lines, answering, bytes, got);
	}
	free(bytes);
}

void source_lines_late(struct source_lines *lines, uint64_t deadline_ns,
		       void (*each)(void *context, size_t index, const struct source_frame *frames,
				    size_t frame_count),
		       void *context)
{
	struct answering answering = { each, context };

	receive_answers(lines, &answering, deadline_ns);
}

bool source_lines_ask(struct source_lines *lines, uint32_t number, int fd,
		      const uint64_t *addresses, size_t count, uint64_t deadline_ns,
		      void (*each)(void *context, size_t index, const struct source_frame *frames,
				   size_t frame_count),
		      void *context)
{
	struct source_question question = { .number = number, .count = (uint32_t)count };
	struct answering answering = { each, context };

	if (lines->failed || !count || count > SOURCE_LINES_AT_ONCE || !source_lines_start(lines))
		return true;
	/* One question at a time: a child that hangs would fill the socket, and sending would wait
	   for it. */
	receive_answers(lines, NULL, deadline_ns);
	if (lines->failed || lines->owed)
		return lines->failed;
	question.sequence = ++lines->sequence;
	memcpy(question.addresses, addresses, count * sizeof(*addresses));
	if (!send_question(lines, &question, fd)) {
		source_lines_end_child(lines);
		return true;
	}
	lines->asked = lines->owed = (uint32_t)count;
	receive_answers(lines, &answering, deadline_ns);
	return true;
}
