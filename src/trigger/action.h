/*
 * Actions of triggers: child processes, most of them kymo commands. None is waited for: each has a
 * deadline, after which it is killed. What became of it is a row of kymo.triggers.
 */
#ifndef KYMO_TRIGGER_ACTION_H
#define KYMO_TRIGGER_ACTION_H

#include <sys/types.h>

#include "base/format.h"
#include "trigger/trigger.h"

#define ACTION_MOST 16 /* at once */
#define ACTION_DEADLINE_NS 60000000000ull
#define ACTION_BEFORE_S 30 /* of a snapshot */
#define ACTION_AFTER_S 10

/* A firing: what its actions need to know. */
struct action_firing {
	const struct trigger *trigger;
	uint64_t number; /* of the trigger's firings, from 1 */
	uint64_t rows; /* new ones */
	const char *json; /* the first of them, one object a line */
};

struct action {
	pid_t child; /* 0: not running */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	uint64_t again_ns; /* a snapshot is written again at this time; 0: not */
	int input; /* the pipe to its standard input; -1: none */
	char *rows; /* that are left to write; owned */
	size_t rows_bytes, rows_written;
	/* for its row */
	char trigger[TRIGGER_NAME_BYTES];
	char action[64];
	char saved[128]; /* below the directory */
	uint64_t saved_bytes; /* of that file, when it was last written */
	char row[192];
	uint64_t row_count;
};

struct actions {
	struct action list[ACTION_MOST];
	char kymo[KYMO_PATH_BYTES]; /* the program */
	char recording[KYMO_PATH_BYTES]; /* that commands read */
	char directory[KYMO_PATH_BYTES + 16]; /* of saved files */
	int32_t pid; /* of the recorded program */
	/* Called when the file of a trigger has grown; NULL: not. */
	void (*saved)(void *context, const char *trigger, uint64_t bytes);
	void *context;
};

/* kymo.triggers, which the process of the watcher writes. */
void actions_row(const struct action *action, const char *result, uint64_t bytes);

/* Starts one action of a firing. What cannot be started is a row, too. */
void actions_start(struct actions *actions, const struct action_firing *firing, const char *text,
		   uint64_t now_ns);
/* Looks after running actions. */
void actions_look(struct actions *actions, uint64_t now_ns);
/* Writes snapshots that wait for their second part now, and waits for all, at most for wait_ns. */
void actions_finish(struct actions *actions, uint64_t wait_ns);
/* Runs kymo with these words, without output, at most for two seconds; its exit status, or -1.
   For settings. */
int actions_run_kymo(const struct actions *actions, char *const *argv, char *output,
		     size_t output_bytes);

#endif
