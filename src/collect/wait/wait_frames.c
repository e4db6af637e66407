/* Waits by the Python functions that a thread is in: what a system call alone does not tell. */
#include <stdio.h>
#include <string.h>

#include "collect/wait/wait_kind.h"

#define FRAMES_MOST 8 /* innermost frames that are looked at */

/* Waits of Python's standard library. kind: as answered before; WAIT_OTHER: any but running. */
static const struct {
	const char *function, *file;
	enum wait_kind from, to;
	const char *target;
} waits[] = {
	{ "Thread._wait_for_tstate_lock", "/threading.py", WAIT_LOCK, WAIT_LOCK, "another thread" },
	{ "Thread.join", "/threading.py", WAIT_LOCK, WAIT_LOCK, "another thread" },
	{ "Barrier._wait", "/threading.py", WAIT_LOCK, WAIT_LOCK, "a Barrier" },
	{ "Event.wait", "/threading.py", WAIT_LOCK, WAIT_LOCK, "an Event" },
	{ "Queue.get", "/queue.py", WAIT_LOCK, WAIT_LOCK, "a queue" },
	{ "Queue.put", "/queue.py", WAIT_LOCK, WAIT_LOCK, "a full queue" },
	{ "_worker", "/futures/thread.py", WAIT_LOCK, WAIT_LOCK, "a queue" },
	{ "Semaphore.acquire", "/threading.py", WAIT_LOCK, WAIT_LOCK, "a Semaphore" },
	{ "Future.result", "/_base.py", WAIT_LOCK, WAIT_LOCK, "a Future" },
	{ "wait", "/futures/_base.py", WAIT_LOCK, WAIT_LOCK, "a Future" },
	{ "Condition.wait_for", "/threading.py", WAIT_LOCK, WAIT_LOCK, "a Condition" },
	{ "Condition.wait", "/threading.py", WAIT_LOCK, WAIT_LOCK, "a Condition" },
	{ "Popen._try_wait", "/subprocess.py", WAIT_OTHER, WAIT_CHILD, "" },
	{ "Popen.poll", "/popen_fork.py", WAIT_OTHER, WAIT_CHILD, "" },
	{ "Popen._communicate", "/subprocess.py", WAIT_OTHER, WAIT_CHILD, "" },
	{ "Popen.communicate", "/subprocess.py", WAIT_PIPE, WAIT_CHILD, "" },
	{ "wait", "/multiprocessing/connection.py", WAIT_OTHER, WAIT_PIPE, "" },
	{ "SocketIO.readinto", "/socket.py", WAIT_OTHER, WAIT_SOCKET, "" },
	{ "SSLSocket.read", "/ssl.py", WAIT_OTHER, WAIT_SOCKET, "" },
	/* Of the threads of autograd, which wait for a device, or for other ranks under DDP: the
	   view python.samples knows whether there are any. */
	{ "_engine_run_backward", "/torch/autograd/graph.py", WAIT_LOCK, WAIT_LOCK,
	  "the backward pass" },
	{ "synchronize", "/torch/cuda/__init__.py", WAIT_OTHER, WAIT_DEVICE, "" },
	{ "Event.synchronize", "/torch/cuda/streams.py", WAIT_OTHER, WAIT_DEVICE, "" },
	{ "Stream.synchronize", "/torch/cuda/streams.py", WAIT_OTHER, WAIT_DEVICE, "" },
};

static bool wait_frames_ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes >= end_bytes && !strcmp(text + bytes - end_bytes, end);
}

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

/* Operations of torch.distributed in which all ranks take part, and the join of a job. */
static bool is_collective(const struct wait_frame *frame)
{
	static const char *const words[] = {
		"all_reduce",
		"all_gather",
		"all_gather_object",
		"all_gather_into_tensor",
		"broadcast",
		"barrier",
		"broadcast_object_list",
		"reduce",
		"gather",
		"scatter",
		"reduce_scatter",
		"all_to_all",
		"all_to_all_single",
		"reduce_scatter_tensor",
		"monitored_barrier",
		"send",
		"recv",
		"init_process_group",
		"gather_object",
		"all_gather_coalesced",
		"_verify_param_shape_across_processes",
		"_sync_module_states",
		"_sync_params_and_buffers",
		"_store_based_barrier",
		"destroy_process_group",
	};

	return strstr(frame->file, "/torch/distributed/") &&
	       is_one_of(frame->function, words, sizeof(words) / sizeof(words[0]));
}

static bool refine_once(const struct wait_frame *frame, struct wait_answer *answer)
{
	if (is_collective(frame)) {
		answer->kind = WAIT_COLLECTIVE;
		snprintf(answer->target, sizeof(answer->target), "%s", frame->function);
		return true;
	}
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		bool fits = waits[i].from == WAIT_OTHER || waits[i].from == answer->kind;

		if (!fits || strcmp(frame->function, waits[i].function) != 0 ||
		    !wait_frames_ends_with(frame->file, waits[i].file))
			continue;
		if (waits[i].to != answer->kind || waits[i].target[0])
			snprintf(answer->target, sizeof(answer->target), "%s", waits[i].target);
		answer->kind = waits[i].to;
		return false; /* a caller may tell more: a queue waits in a Condition */
	}
	return false;
}

/* Of Python's library or of torch. Own code that waits by itself waits for what its system call
   tells: a worker of a pool that waits for a lock of the program does not wait for work. */
static bool is_wait_in_library(const struct wait_frame *frame)
{
	static const char *const parts[] = { "/lib/python3",	"/lib64/python3",  ".zip/",
					     "/site-packages/", "/dist-packages/", "/torch/" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(frame->file, parts[i]))
			return true;
	return !strncmp(frame->file, "<frozen", 7);
}

void wait_kind_refine(const struct wait_frame *frames, size_t count, struct wait_answer *answer)
{
	if (answer->kind == WAIT_RUNNING || answer->kind == WAIT_GIL ||
	    answer->kind == WAIT_STOPPED)
		return;
	for (size_t i = 0; i < count && i < FRAMES_MOST; i++)
		if (refine_once(&frames[i], answer) || !is_wait_in_library(&frames[i]))
			return;
}
