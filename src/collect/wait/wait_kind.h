/*
 * What a thread does or waits for, as one of few kinds: from its state, its system call, the
 * descriptor of that call, and the Python functions that it is in.
 */
#ifndef KYMO_COLLECT_WAIT_WAIT_KIND_H
#define KYMO_COLLECT_WAIT_WAIT_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/wait/wait_call.h"

enum wait_kind {
	WAIT_OTHER, /* a signal, a timer, events; or unknown */
	WAIT_RUNNING,
	WAIT_READY, /* it could run, but has no core */
	WAIT_SLEEP,
	WAIT_DISK,
	WAIT_LOCK,
	WAIT_GIL,
	WAIT_SOCKET,
	WAIT_PIPE,
	WAIT_CHILD,
	WAIT_DEVICE,
	WAIT_COLLECTIVE,
	WAIT_STOPPED, /* by a signal or a debugger */
};

#define WAIT_TARGET_BYTES 96

struct wait_answer {
	enum wait_kind kind;
	char target[WAIT_TARGET_BYTES]; /* peer, path, child, kind of lock; "": not known */
};

/* Sockets that were looked up, since that reads a list of all sockets. */
#define WAIT_PEERS 16
struct wait_peers {
	struct {
		uint64_t inode;
		char peer[WAIT_TARGET_BYTES];
	} known[WAIT_PEERS];
	size_t next;
};

/* A Python function, innermost first in lists. */
struct wait_frame {
	const char *function, *file;
};

/* "socket", "GIL", …: the words of the column activity. */
const char *wait_kind_word(enum wait_kind kind);
/* By the letter of the state alone. */
enum wait_kind wait_kind_of_state(char state);
/* By the system call, with its target. peers may be NULL. A futex is a lock. */
void wait_kind_of_call(pid_t pid, const struct wait_call *call, struct wait_peers *peers,
		       struct wait_answer *out);
/* The same for a thread of this state: reads its call, or, where that is not readable, the kernel
   function in which it waits. */
void wait_kind_of_thread(pid_t pid, pid_t tid, char state, struct wait_peers *peers,
			 struct wait_call *out_call, struct wait_answer *out);
/* wait_frames.c: corrects the answer by the functions: a queue, a collective operation, a child. */
void wait_kind_refine(const struct wait_frame *frames, size_t count, struct wait_answer *answer);
/* By the kernel's own function: "hrtimer_nanosleep". */
enum wait_kind wait_kind_of_channel(const char *name);

#endif
