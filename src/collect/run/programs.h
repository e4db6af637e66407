/* The programs of this user that run now, for kymo attach --all. */
#ifndef KYMO_COLLECT_RUN_PROGRAMS_H
#define KYMO_COLLECT_RUN_PROGRAMS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct program {
	pid_t pid, parent;
	uint64_t starttime; /* as of struct proc_stat */
	char name[64];
	bool kymo; /* a command of kymo */
	bool apart; /* never a program to watch: see programs_look() */
	bool watched; /* set by the caller; its children are then watched with it */
};

/* All processes of one look, by pid. */
struct programs {
	struct program *list;
	size_t count, room;
};

struct programs_wanted {
	const regex_t *pattern; /* of the command line, its words separated by spaces; NULL: all */
	uint64_t since; /* programs that started earlier are not wanted; 0: all are */
};

/* The real user alone decides: only a process whose real, effective and saved user are that of this
   process is in the list. Apart: this process and those that it descends from, process 1, and
   without a pattern the shell of a terminal, whose children are programs of their own. 0 or
   -ENOMEM, and what was found until then. */
int programs_look(struct programs *programs, const struct programs_wanted *wanted);
/* NULL: no such process. */
struct program *programs_find(const struct programs *programs, pid_t pid);
/* Wanted, and no part of a program that is watched or that kymo run has started. Reads its command
   line. */
bool programs_is_wanted(const struct programs *programs, const struct program *program,
			const struct programs_wanted *wanted);
void programs_fini(struct programs *programs);

#endif
