/* kymo run --python: variables for the program's Python, and a message when nothing was
   recorded. */
#ifndef KYMO_CMDS_RUN_RUN_PYTHON_H
#define KYMO_CMDS_RUN_RUN_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collect/collect.h"

/* Variables for the program, in addition to those of every run. */
struct run_environment {
	char *list[COLLECT_VARIABLES + 1]; /* "NAME=value", NULL-terminated */
	size_t count;
	bool injected; /* kymo is in the program's Pythons */
};

/* Out of memory or too many variables: the variable is left out. */
void run_environment_set(struct run_environment *environment, const char *name, const char *value);
bool run_environment_has(struct run_environment *environment, const char *name);
/* Before other preloads, of kymo or of the user. library has no colon and no space. */
void run_environment_preload(struct run_environment *environment, const char *library);
/* Makes every Python that the program is or starts load kymo; see collect/run/inject.h. A second
   call does nothing. 0, or a negative errno and *err. */
int run_environment_inject(struct run_environment *environment, struct kymo_error *err);
void run_environment_fini(struct run_environment *environment);

struct run_python {
	bool on, partial, lines, c_calls;
	/* The window in which calls are recorded, as typed; NULL: no limit */
	const char *skip, *take, *from, *to;
	unsigned limit; /* millionths of the time that calls may cost; 0: no limit */
};

/* "partial,lines,c-calls" in any order; NULL or "on": all calls. -1, or the exit status of a usage
   error. */
int run_python_words(struct run_python *python, const char *words);
/* --max-overhead. -1, or the exit status of a usage error. */
int run_python_budget(struct run_python *python, struct collect_options *collect, const char *text);
/* Checks the options and sets variables for the program. -1, or the exit status. */
int run_python_prepare(const struct run_python *python, bool quiet,
		       struct run_environment *environment);
/* Records garbage collections if the program is Python. KYMO_GC in the environment takes
   precedence. */
void run_python_collections(char *const *argv, struct run_environment *environment);
/* True for Python and for programs that start Python for torch. Only these get a longer PYTHONPATH
   without an option. */
bool run_python_is(const char *path);
/* If the recording has no zones: prints the reason on stderr and returns true. */
bool run_python_report_empty(const struct run_python *python, char *const *argv,
			     const char *recording);

#endif
