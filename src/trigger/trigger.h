/*
 * A trigger: a SELECT over a live recording, and what is done when it returns a row that it has not
 * returned before. Definitions are a text, which users write as a file for `kymo run --triggers`
 * and which the live directory holds as the file `triggers`:
 *
 *	[slow]
 *	when = SELECT step, duration_ns FROM trace.steps
 *	       WHERE duration_ns > 1e9
 *	action = snapshot
 *	action = run notify --page
 *	every = 1
 *	cooldown = 60
 *	limit = 10
 *	bytes = 1G
 *	ranks = all
 *
 * A line that begins with white space continues the one before it. # begins a comment line. All
 * keys but `when` have defaults; a section that is named like a ready-made trigger needs no `when`.
 */
#ifndef KYMO_TRIGGER_TRIGGER_H
#define KYMO_TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define TRIGGER_MOST 32 /* of a run */
#define TRIGGER_NAME_BYTES 32
#define TRIGGER_ACTIONS 8 /* of a trigger */
#define TRIGGER_ACTION_BYTES 256
#define TRIGGER_FILE "triggers" /* in the live directory */

struct trigger {
	char name[TRIGGER_NAME_BYTES]; /* letters, digits, _ and - */
	char *sql; /* owned */
	char actions[TRIGGER_ACTIONS][TRIGGER_ACTION_BYTES];
	size_t action_count;
	double every_s, cooldown_s;
	uint64_t limit; /* of firings */
	uint64_t limit_bytes; /* of saved files */
	bool all_ranks;
};

struct trigger_set {
	struct trigger triggers[TRIGGER_MOST];
	size_t count;
};

enum trigger_action_kind {
	TRIGGER_SNAPSHOT, /* the last 30 s at once, and 10 s later the 40 s around it */
	TRIGGER_WHY, /* stacks and causes of waits, as kymo backtrace --why prints them */
	TRIGGER_DETAIL, /* settings for some steps or seconds */
	TRIGGER_MARK, /* a row of trace.marks */
	TRIGGER_RUN, /* a command of the user, with the rows on its standard input */
};

/* The settings of "detail KEY=VALUE … for N steps|seconds". */
struct trigger_detail {
	char settings[TRIGGER_ACTION_BYTES]; /* the words, separated by spaces */
	double amount;
	bool steps;
};

void trigger_set_fini(struct trigger_set *set);

/* Adds "NAME=SELECT …" or the name of a ready-made trigger, with defaults and no action. The
   returned trigger is valid until the set changes. NULL and *err: invalid, or there are too many.
   */
struct trigger *trigger_add(struct trigger_set *set, const char *word, struct kymo_error *err);
/* Checks and adds an action; a trigger without any gets "snapshot" when the set is complete. */
int trigger_add_action(struct trigger *trigger, const char *action, struct kymo_error *err);
/* Sets a key as a file does; when and action, too. */
int trigger_set_key(struct trigger *trigger, const char *key, const char *value,
		    struct kymo_error *err);
/* False: there is none of that name. */
bool trigger_remove(struct trigger_set *set, const char *name);
struct trigger *trigger_find(struct trigger_set *set, const char *name);
/* Gives the default action to triggers without one. */
void trigger_complete(struct trigger_set *set);

/* Adds the definitions of a text. from: its name in messages. Bytes after a NUL are ignored. */
int trigger_parse(struct trigger_set *set, const char *text, const char *from,
		  struct kymo_error *err);
/* In the form that trigger_parse() reads. */
void trigger_format(struct buf *out, const struct trigger_set *set);
/* The same for a file; -ENOENT if it is missing. */
int trigger_read_file(struct trigger_set *set, const char *path, struct kymo_error *err);
/* Triggers run commands: only those of a live directory of the effective user are obeyed, which
   others may not write to. -EPERM and *err: it is another's. */
int trigger_check_owner(const char *live, struct kymo_error *err);
/* The file `triggers` of such a directory, with the same check; no file is an empty set. */
int trigger_read_live(struct trigger_set *set, const char *live, struct kymo_error *err);
/* Replaces the file `triggers` of a live directory. */
int trigger_write_file(const struct trigger_set *set, const char *live, struct kymo_error *err);

/* The action must have passed trigger_add_action(). */
enum trigger_action_kind trigger_action_kind(const char *action);
/* False: it has no settings, no amount or no unit. */
bool trigger_detail_parse(const char *action, struct trigger_detail *out);

/* ---- ready-made (trigger_ready.c) ---------------------------------------------------------- */

struct trigger_ready {
	const char *name, *about, *sql;
};
extern const struct trigger_ready trigger_ready[]; /* ends with a NULL name */

#endif
