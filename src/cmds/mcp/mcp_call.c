#include "cmds/mcp/mcp_call.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmds/cmds.h"
#include "views/term/text.h"

#define SECONDS_MOST 120 /* of a tool; queries have a limit of their own */
#define GRACE_SECONDS 3 /* from SIGTERM, after which the guard ends its child, to SIGKILL */
#define GATHERED_MOST (1u << 20) /* bytes of an output; more are counted */
#define REMARKS_MOST 4096

enum { CALL_OUT, CALL_ERR, CALL_OUTPUTS };

struct call {
	pid_t child;
	int fds[CALL_OUTPUTS];
	struct buf outputs[CALL_OUTPUTS];
	uint64_t bytes[CALL_OUTPUTS]; /* that came */
	double ends, kill_at; /* seconds of CLOCK_MONOTONIC; kill_at 0: not asked to end yet */
	bool timed_out, cancelled;
};

static double mcp_call_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the child ------------------------------------------------------------------------------- */

static void mcp_call_child(pid_t parent, const int pipes[CALL_OUTPUTS][2],
			   const struct mcp_tool *tool, const struct mcp_arguments *arguments)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int status;

	/* The guard of a command ends its child and removes its files. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
	    dup2(pipes[CALL_OUT][1], STDOUT_FILENO) < 0 ||
	    dup2(pipes[CALL_ERR][1], STDERR_FILENO) < 0)
		_exit(CMDS_FAILED);
	setenv("LC_ALL", "C.UTF-8", 1); /* the protocol is UTF-8, whatever the locale */
	unsetenv("KYMO_QUIET"); /* the recording is named where latest is meant */
	status = tool->run(arguments);
	fflush(stdout);
	fflush(stderr);
	_exit(status);
}

/* -1: it could not be started. */
static int mcp_call_start(struct call *call, const struct mcp_tool *tool,
			  const struct mcp_arguments *arguments)
{
	int pipes[CALL_OUTPUTS][2];
	pid_t parent = getpid();

	if (pipe2(pipes[CALL_OUT], O_CLOEXEC))
		return -1;
	if (pipe2(pipes[CALL_ERR], O_CLOEXEC)) {
		close(pipes[CALL_OUT][0]);
		close(pipes[CALL_OUT][1]);
		return -1;
	}
	fflush(stdout);
	fflush(stderr);
	call->child = fork();
	if (!call->child)
		mcp_call_child(parent, (const int(*)[2])pipes, tool, arguments);
	for (int i = 0; i < CALL_OUTPUTS; i++) {
		close(pipes[i][1]);
		call->fds[i] = pipes[i][0];
	}
	return call->child < 0 ? -1 : 0;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void mcp_call_take(struct call *call, int which)
{
	char block[16384];
	ssize_t count = read(call->fds[which], block, sizeof(block));
	size_t room;

	if (count < 0 && errno == EINTR)
		return;
	if (count <= 0) {
		close(call->fds[which]);
		call->fds[which] = -1;
		return;
	}
	call->bytes[which] += (uint64_t)count;
	room = GATHERED_MOST - call->outputs[which].used;
	buf_add(&call->outputs[which], block, (size_t)count < room ? (size_t)count : room);
}

static void mcp_call_end(struct call *call)
{
	if (!call->kill_at)
		call->kill_at = mcp_call_now() + GRACE_SECONDS;
	kill(call->child, SIGTERM);
}

static void mcp_call_deadlines(struct call *call)
{
	double now = mcp_call_now();

	if (!call->kill_at && now >= call->ends) {
		call->timed_out = true;
		mcp_call_end(call);
	}
	if (call->kill_at && now >= call->kill_at)
		kill(call->child, SIGKILL);
}

static void look_for_cancellation(struct call *call, const struct json_part *id,
				  struct mcp_input *input)
{
	if (call->cancelled)
		return;
	call->cancelled = mcp_input_cancels(input, id);
	if (call->cancelled)
		mcp_call_end(call);
}

static void mcp_call_wait(struct call *call, const struct json_part *id, struct mcp_input *input)
{
	bool listen = true;

	look_for_cancellation(call, id, input);
	while (call->fds[CALL_OUT] >= 0 || call->fds[CALL_ERR] >= 0) {
		struct pollfd polled[] = { { call->fds[CALL_OUT], POLLIN, 0 },
					   { call->fds[CALL_ERR], POLLIN, 0 },
					   { listen ? input->fd : -1, POLLIN, 0 },
					   { call->cancelled ? -1 : STDOUT_FILENO, 0, 0 } };
		int ready = poll(polled, 4, 200);

		mcp_call_deadlines(call);
		for (int i = 0; ready > 0 && i < CALL_OUTPUTS; i++)
			if (polled[i].revents)
				mcp_call_take(call, i);
		if (ready > 0 && polled[2].revents) {
			/* A full buffer of requests waits until this one is answered. */
			listen = mcp_input_read(input);
			look_for_cancellation(call, id, input);
		}
		/* The end of the input alone is that of a file of messages. */
		if (ready > 0 && (polled[3].revents & (POLLERR | POLLHUP))) {
			call->cancelled = true;
			mcp_call_end(call);
		}
	}
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Adds lines, each escaped, up to so many bytes; returns the number of lines that do not fit. */
static uint64_t mcp_call_escaped(struct buf *out, const struct buf *from, size_t most)
{
	const char *at = buf_get(from), *end = at + from->used;
	struct buf line = { 0 };
	uint64_t left_out = 0;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		buf_reset(&line);
		text_visible(&line, at, (size_t)(stop - at));
		buf_char(&line, '\n');
		if (left_out || out->used + line.used > most)
			left_out++;
		else
			buf_add(out, line.data, line.used);
		at = stop + 1;
	}
	buf_fini(&line);
	return left_out;
}

static void mcp_call_answer(const struct mcp_tool *tool, struct call *call, int wstatus,
			    struct mcp_answer *out)
{
	uint64_t left_out = mcp_call_escaped(&out->text, &call->outputs[CALL_OUT], MCP_ANSWER_MOST);

	out->cancelled = call->cancelled;
	out->failed = !WIFEXITED(wstatus) || WEXITSTATUS(wstatus) != CMDS_OK;
	mcp_call_escaped(&out->remarks, &call->outputs[CALL_ERR], REMARKS_MOST);
	if (call->timed_out)
		buf_print(&out->remarks, "the tool was stopped after %d s\n", SECONDS_MOST);
	else if (out->failed && !out->remarks.used)
		buf_text(&out->remarks, "the tool ended without an answer\n");
	if (call->bytes[CALL_OUT] > call->outputs[CALL_OUT].used)
		buf_print(&out->remarks, "%" PRIu64 " bytes are left out; %s\n",
			  call->bytes[CALL_OUT] - out->text.used, tool->more);
	else if (left_out)
		buf_print(&out->remarks, "%" PRIu64 " lines are left out; %s\n", left_out,
			  tool->more);
}

void mcp_call(const struct mcp_tool *tool, const struct mcp_arguments *arguments,
	      const struct json_part *id, struct mcp_input *input, struct mcp_answer *out)
{
	struct call call = { .child = -1,
			     .fds = { -1, -1 },
			     .ends = mcp_call_now() + SECONDS_MOST };
	int wstatus = 0;

	*out = (struct mcp_answer){ .failed = true };
	if (mcp_call_start(&call, tool, arguments)) {
		buf_print(&out->remarks, "cannot start a child process: %s\n", strerror(errno));
	} else {
		mcp_call_wait(&call, id, input);
		while (waitpid(call.child, &wstatus, 0) < 0 && errno == EINTR)
			;
		mcp_call_answer(tool, &call, wstatus, out);
	}
	for (int i = 0; i < CALL_OUTPUTS; i++) {
		if (call.fds[i] >= 0)
			close(call.fds[i]);
		buf_fini(&call.outputs[i]);
	}
}

void mcp_call_fini(struct mcp_answer *answer)
{
	buf_fini(&answer->text);
	buf_fini(&answer->remarks);
}
