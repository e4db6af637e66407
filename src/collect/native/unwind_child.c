/* Unwinds in a child process that may be killed at any time. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "collect/native/process_memory.h"
#include "collect/native/unwind.h"

#define TEXT_MOST 65536 /* of a name; a demangled name may be longer than its symbol */
#define ANSWER_MOST (256u << 20)
#define CHILD_FD 3 /* of the pipe */

/* One frame in the pipe, followed by its texts. */
struct message {
	uint32_t job, func_bytes, file_bytes;
	int32_t line;
	uint32_t eval;
};

/* ---- the child ------------------------------------------------------------------------------- */

static void write_all(const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count) {
		ssize_t done = write(CHILD_FD, at, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			_exit(1);
		at += done;
		count -= (size_t)done;
	}
}

static uint32_t text_bytes(const char *text)
{
	return text ? (uint32_t)strnlen(text, TEXT_MOST) : 0;
}

static void send_frame(uint32_t job, const struct unwind_frame *frame)
{
	const struct message message = { .job = job,
					 .func_bytes = text_bytes(frame->func),
					 .file_bytes = text_bytes(frame->file),
					 .line = frame->line,
					 .eval = frame->eval };

	write_all(&message, sizeof(message));
	write_all(frame->func, message.func_bytes);
	write_all(frame->file, message.file_bytes);
}

/* Nothing of the parent's is kept open, and the child ends with it. */
static void confine(int pipe_end)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	if (pipe_end != CHILD_FD)
		dup2(pipe_end, CHILD_FD);
	syscall(SYS_close_range, CHILD_FD + 1, ~0u, 0);
}

__attribute__((noreturn)) static void run_child(struct unwind *unwind,
						const struct unwind_job *jobs, size_t count,
						int pipe_end)
{
	struct unwind_frame *frames = calloc(UNWIND_DEEPEST, sizeof(*frames));

	confine(pipe_end);
	for (size_t i = 0; frames && i < count; i++) {
		size_t found = jobs[i].stop
				       ? unwind_frames(unwind, jobs[i].stop, frames, UNWIND_DEEPEST)
				       : 0;

		for (size_t k = 0; k < found; k++)
			send_frame((uint32_t)i, &frames[k]);
		memset(frames, 0, found * sizeof(*frames)); /* their texts end with the child */
	}
	_exit(frames ? 0 : 1);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Milliseconds until the deadline; -1: there is none. */
static int time_left(void)
{
	const uint64_t now_ns = clock_monotonic_ns(), until_ns = process_memory_deadline();

	if (!until_ns)
		return -1;
	return now_ns >= until_ns ? 0 : (int)((until_ns - now_ns) / 1000000) + 1;
}

/* True at the end of the pipe; false: the deadline has passed, or the answer is too long. */
static bool receive(int pipe_end, struct buf *out)
{
	struct pollfd fd = { .fd = pipe_end, .events = POLLIN };
	char bytes[16384];
	ssize_t got = 1;

	while (got > 0 && out->used < ANSWER_MOST) {
		int ready = poll(&fd, 1, time_left());

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		got = read(pipe_end, bytes, sizeof(bytes));
		if (got > 0)
			buf_add(out, bytes, (size_t)got);
	}
	return got == 0;
}

static bool add_frame(struct unwind_job *job, const struct message *message, const char *texts)
{
	struct unwind_frame *frame;

	if (!job->frames)
		job->frames = calloc(UNWIND_DEEPEST, sizeof(*job->frames));
	if (!job->frames || job->count >= UNWIND_DEEPEST)
		return false;
	frame = &job->frames[job->count++];
	frame->func = strndup(texts, message->func_bytes);
	frame->file = message->file_bytes
			      ? strndup(texts + message->func_bytes, message->file_bytes)
			      : NULL;
	frame->line = message->line;
	frame->eval = message->eval;
	return true;
}

/* Whole messages; the last one may be cut. */
static void take_messages(const struct buf *answer, struct unwind_job *jobs, size_t count)
{
	const char *at = buf_get(answer);
	size_t left = answer->used;
	struct message message;

	while (left >= sizeof(message)) {
		memcpy(&message, at, sizeof(message));
		at += sizeof(message);
		left -= sizeof(message);
		if (message.job >= count || message.func_bytes > left ||
		    message.file_bytes > left - message.func_bytes ||
		    !add_frame(&jobs[message.job], &message, at))
			return;
		at += message.func_bytes + message.file_bytes;
		left -= message.func_bytes + message.file_bytes;
	}
}

static int end_child(pid_t child, bool ended, struct kymo_error *err)
{
	int status = 0;

	if (!ended)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!ended)
		return error_set(err, ETIMEDOUT,
				 "not all native frames are shown: reading them took longer than "
				 "%llu s",
				 PROCESS_MEMORY_WITHIN_NS / 1000000000);
	if (WIFSIGNALED(status))
		return error_set(
			err, EIO,
			"not all native frames are shown: libdw ended with signal %d (%s); "
			"a library of the program is damaged",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	return 0;
}

int unwind_all(struct unwind *unwind, struct unwind_job *jobs, size_t count, struct kymo_error *err)
{
	struct buf answer = { 0 };
	int ends[2], rc;
	pid_t child;

	if (pipe(ends))
		return error_set(err, errno, "cannot read native frames: %s", strerror(errno));
	child = fork();
	if (!child)
		run_child(unwind, jobs, count, ends[1]);
	close(ends[1]);
	if (child < 0) {
		rc = error_set(err, errno, "cannot read native frames: %s", strerror(errno));
	} else {
		bool ended = receive(ends[0], &answer);

		rc = end_child(child, ended, err);
		take_messages(&answer, jobs, count);
	}
	close(ends[0]);
	buf_fini(&answer);
	return rc;
}
