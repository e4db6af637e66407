/*
 * Which processes wait for each other: one that reads from a pipe waits for those that may write to
 * it, one that writes to a full pipe for those that may read it, and a parent for its child. Only
 * the main thread of each process counts.
 */
#ifndef KYMO_COLLECT_RUN_AUTOPSY_LINKS_H
#define KYMO_COLLECT_RUN_AUTOPSY_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define AUTOPSY_LINKS_MOST 16

enum autopsy_link_kind {
	AUTOPSY_LINK_NONE,
	AUTOPSY_LINK_READ,
	AUTOPSY_LINK_WRITE,
	AUTOPSY_LINK_CHILD
};

struct autopsy_link {
	pid_t pid;
	bool single; /* it has one thread: it cannot end its own wait */
	enum autopsy_link_kind kind;
	bool wakers[AUTOPSY_LINKS_MOST]; /* the processes of the list that can end its wait */
	bool stuck; /* out: all that can end its wait are stuck, too */
};

/* Fills kind, wakers and stuck of `count` processes, at most AUTOPSY_LINKS_MOST. Returns how many
   are stuck: 0 if any wait may end. */
size_t autopsy_links_find(struct autopsy_link *links, size_t count);
/* The part of it that needs no process: stuck, by kind and wakers. */
size_t autopsy_links_settle(struct autopsy_link *links, size_t count);

#endif
