/*
 * The processes that run SQL for kymo serve, which never loads DuckDB itself: a crash, memory
 * beyond the limit or a function that ignores the time limit ends a child, and its question.
 *
 * A child opens one recording. Those of ended recordings are kept for the next question. One child
 * without a recording, with DuckDB loaded, is kept ready. Each thread asks one question at a time,
 * so there are never more children than threads that ask, the kept ones and the ready one.
 */
#ifndef KYMO_SERVE_CHILDREN_CHILDREN_H
#define KYMO_SERVE_CHILDREN_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "serve/children/question.h"

struct children_ask {
	struct question question;
	const char *sql; /* NULL: none */
	bool keep; /* the recording has ended: the child may answer more questions */
	/* Called with the pid of the child that got the question, which may be killed from then
	   on, and with 0 when it may not. False: the question was cancelled. May be NULL. */
	bool (*running)(void *context, pid_t child);
	void *context;
	/* The answer; the caller closes it. -1: none. */
	int fd;
	bool not_opened; /* it failed because the recording could not be opened */
};

/* Starts a child ahead of the first question. */
void children_prepare(void);

/* 0 and ask->fd, or a negative errno and a sentence. */
int children_ask(struct children_ask *ask, struct kymo_error *err);
/* Appends the whole answer and closes it. 0 or -ENOMEM, -EIO. */
int children_read_answer(struct children_ask *ask, struct buf *out, struct kymo_error *err);

#endif
