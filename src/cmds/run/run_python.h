/* kymo run --python: what is asked of the program's Python, and what is said when that came to
   nothing. */
#ifndef KYMO_CMDS_RUN_RUN_PYTHON_H
#define KYMO_CMDS_RUN_RUN_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collect/run/collect.h"

/* Variables for the program besides those that every run gives it. */
struct run_environment {
	char *list[COLLECT_VARIABLES + 1]; /* "NAME=value", ended by NULL */
	size_t count;
	bool injected; /* kymo is in the program's Pythons */
};

/* No memory, or too many: the variable is left out. */
void run_environment_set(struct run_environment *environment, const char *name, const char *value);
bool run_environment_has(const struct run_environment *environment, const char *name);
/* Puts kymo into the Pythons that the program is or starts, once; see collect/run/inject.h. 0, or a
   negative errno and *err. */
int run_environment_inject(struct run_environment *environment, struct kymo_error *err);
void run_environment_fini(struct run_environment *environment);

struct run_python {
	bool on, partial, lines, c_calls;
	/* The window in which calls are recorded, as it was typed; NULL: not bounded */
	const char *skip, *take, *from, *to;
};

/* "partial,lines,c-calls" in any order; NULL or "on": all calls. -1, or the exit status of wrong
   use. */
int run_python_words(struct run_python *python, const char *words);
/* What the options say together, into variables. -1, or the exit status. */
int run_python_prepare(const struct run_python *python, bool quiet,
		       struct run_environment *environment);
/* Collections of garbage, in a program that is Python; KYMO_GC in the environment stands. */
void run_python_collections(char *const *argv, struct run_environment *environment);
/* Is it Python, or does it start Python for torch? Only such a program gets a longer PYTHONPATH
   where nobody asked. */
bool run_python_is(const char *path);
/* True where the recording holds no zone at all; then it has said so, and why, on stderr. */
bool run_python_came_to_nothing(const struct run_python *python, char *const *argv,
				const char *recording);

#endif
