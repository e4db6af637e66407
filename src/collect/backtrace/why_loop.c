#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "collect/backtrace/own_code.h"
#include "collect/backtrace/why.h"

static bool why_is_frame(const struct stacks_frame *frame, const char *func, const char *file)
{
	size_t bytes = frame->file ? strlen(frame->file) : 0, end = strlen(file);

	return frame->func && !frame->native && bytes >= end && !strcmp(frame->func, func) &&
	       !strcmp(frame->file + bytes - end, file);
}

/*
 * The number of frames that belong to the callback that an event loop runs; 0: none. asyncio's loop
 * is in Python and calls Handle._run; uvloop's is not, so whatever runs below asyncio.run() is a
 * callback.
 */
static size_t frames_of_callback(const struct stacks_thread *thread)
{
	size_t of_runner = 0;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		if (why_is_frame(frame, "Handle._run", "asyncio/events.py"))
			return i;
		if (why_is_frame(frame, "BaseEventLoop._run_once", "asyncio/base_events.py") ||
		    why_is_frame(frame, "BaseEventLoop.run_forever", "asyncio/base_events.py"))
			return 0; /* between two callbacks */
		if (!of_runner && why_is_frame(frame, "Runner.run", "asyncio/runners.py"))
			of_runner = i;
	}
	return of_runner;
}

/* The innermost frame of the program's own code, or the innermost one of Python; NULL: none. */
static const struct stacks_frame *blocking_frame(const struct stacks_thread *thread, size_t count)
{
	char path[64], cwd[KYMO_PATH_BYTES];
	const struct stacks_frame *first = NULL;
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)thread->pid);
	bytes = readlink(path, cwd, sizeof(cwd) - 1);
	cwd[bytes > 0 ? bytes : 0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		if (frame->native || !frame->func || !frame->file)
			continue;
		if (own_code_is(frame->file, strlen(frame->file), cwd))
			return frame;
		if (!first)
			first = frame;
	}
	return first;
}

void why_add_loop(struct buf *out, const struct stacks_thread *thread)
{
	size_t count = frames_of_callback(thread);
	const struct stacks_frame *frame = count ? blocking_frame(thread, count) : NULL;
	const char *file = frame ? strrchr(frame->file, '/') : NULL;

	if (!frame)
		return;
	buf_print(out, "; %s the event loop in %s (%s:%d)",
		  thread->state == 'R' ? "runs a callback of" : "blocks", frame->func,
		  file ? file + 1 : frame->file, frame->line);
	if (thread->task_count)
		buf_print(out, ": %zu other task%s cannot run", thread->task_count,
			  thread->task_count == 1 ? "" : "s");
}
