/*
 * asyncio's tasks of another process that are not running: their coroutines, outermost to
 * innermost, where each one is suspended, and who waits for whom. Nothing runs in the process, and
 * it is not stopped: a task counts only if all its coroutines were suspended and the same before
 * and after, read forwards and backwards in one system call.
 */
#ifndef KYMO_COLLECT_PYTHON_PYTASKS_H
#define KYMO_COLLECT_PYTHON_PYTASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/python/pystack.h"

#define PYTASKS_NAME_BYTES 96
#define PYTASKS_MOST 20000 /* of a process; further ones are only said to be there */

enum pytasks_state {
	PYTASKS_SUSPENDED,
	PYTASKS_RUNNING, /* its frames are on the stack of a thread */
	PYTASKS_NEW, /* it has not begun */
	PYTASKS_MISSED, /* it changed while it was read, each time */
};

struct pytasks_one {
	uint64_t address;
	uint64_t waiter; /* the future that it waits for; 0: none, it is about to run */
	uint64_t ident; /* of the thread that runs its loop; 0: not known */
	enum pytasks_state state;
	char name[PYTASKS_NAME_BYTES];
	char waits_for[PYTASKS_NAME_BYTES]; /* the waiter's type; "": none */
	struct pystack_frame *frames; /* the innermost first; valid until the next pystack_read() */
	size_t frame_count;
};

/* One task that waits for another one's end. Places in the list of tasks. */
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

/* After pystack_read(). None where asyncio was never imported. False: no memory, what was found is
   there. */
bool pytasks_read(struct pystack *stack, struct pytasks *out);
void pytasks_free(struct pytasks *tasks);

/* Between the files of this name; pytasks_find.c. Addresses of tasks, in no order, some of them
   perhaps not tasks any more. */
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
