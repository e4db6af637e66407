/*
 * Asks the conditions of triggers. DuckDB runs in a child process at the lowest priority with a
 * memory limit: a condition that crashes, hangs or takes all memory ends the child, and the next
 * look starts another one. Which rows a condition has returned is remembered in memory that
 * outlives the child.
 */
#ifndef KYMO_TRIGGER_CONDITION_H
#define KYMO_TRIGGER_CONDITION_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/format.h"
#include "trigger/trigger.h"

#define CONDITION_SEEN 16384 /* rows that are remembered of a trigger; then all are forgotten */

struct condition_seen {
	uint64_t sql_hash; /* of the condition that they are rows of */
	uint64_t count;
	uint64_t rows[CONDITION_SEEN]; /* hashes; 0: free */
};

struct conditions {
	char path[KYMO_PATH_BYTES]; /* of the recording */
	const struct trigger_set *set;
	struct condition_seen *seen; /* TRIGGER_MOST of them, shared with the child */
	pid_t child; /* 0: none */
	int fd; /* a socket to it */
};

struct condition_answer {
	uint64_t new_rows; /* that the condition has not returned before */
	uint64_t cpu_ns; /* of the child */
	struct buf rows; /* the first of them, one JSON object a line */
	char problem[512]; /* why it could not be asked; "": it was */
};

/* 0 or -ENOMEM. path and set are used until conditions_fini(). */
int conditions_init(struct conditions *conditions, const char *path, const struct trigger_set *set);
void conditions_fini(struct conditions *conditions);
/* The recording has moved, or the definitions have changed: the child starts anew. Rows that were
   returned stay known if trigger i has the same condition as before. */
void conditions_restart(struct conditions *conditions, const char *path);
/* Asks trigger number i. refresh: look at the recording again; without it, the answer is of the
   same moment as the one before. The caller frees answer->rows. */
void condition_ask(struct conditions *conditions, size_t i, bool refresh,
		   struct condition_answer *answer);
/* The highest step so far; -1: unknown. */
double condition_step(struct conditions *conditions);

/* Checks a condition by DuckDB, in this process. A table that does not exist yet is not an error:
   the program may make it later. */
int condition_check(const char *path, const char *sql, struct kymo_error *err);

#endif
