/*
 * Reads asyncio tasks of another process that are not running: their coroutines from outermost to
 * innermost, where each is suspended, and which task waits for which. The process is not stopped,
 * and no code runs in it. A task is accepted only if all its coroutines were suspended and
 * unchanged when read forwards and backwards in one system call.
 */
#ifndef KYMO_COLLECT_PYTHON_PYTASKS_H
#define KYMO_COLLECT_PYTHON_PYTASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/python/pystack.h"

#define PYTASKS_NAME_BYTES 96
#define PYTASKS_MOST 20000 /* of a process; more are only indicated (.cut) */

enum pytasks_state {
	PYTASKS_SUSPENDED,
	PYTASKS_RUNNING, /* its frames are on the stack of a thread */
	PYTASKS_NEW, /* not started */
	PYTASKS_MISSED, /* it changed during every read */
};

struct pytasks_one {
	uint64_t address;
	uint64_t waiter; /* the future it waits for; 0: none, it is ready to run */
	uint64_t ident; /* of the thread of its event loop; 0: unknown */
	enum pytasks_state state;
	char name[PYTASKS_NAME_BYTES];
	char waits_for[PYTASKS_NAME_BYTES]; /* the waiter's type; "": none */
	struct pystack_frame *frames; /* innermost first; valid until the next pystack_read() */
	size_t frame_count;
};

/* A task that waits for the end of another, as indices of the list of tasks. */
struct pytasks_link {
	uint32_t waiting, awaited;
};

struct pytasks {
	struct pytasks_one *all; /* by name */
	size_t count;
	struct pytasks_link *links;
	size_t link_count;
	bool cut; /* there are more than PYTASKS_MOST */
};

/* Call it after pystack_read(). No tasks if asyncio is not imported. False: out of memory, the list
   is incomplete. */
bool pytasks_read(struct pystack *stack, struct pytasks *out);
void pytasks_free(struct pytasks *tasks);

/* pytasks_find.c: addresses of tasks in no order; some may no longer be tasks. */
struct pytasks_found {
	struct {
		uint64_t address, ident;
	} * all;
	size_t count, room;
};
bool pytasks_find(struct pystack *stack, struct pytasks_found *out);
/* pytasks_links.c: fills the links. */
bool pytasks_connect(const struct pymemory *memory, struct pytasks *tasks);

#endif
