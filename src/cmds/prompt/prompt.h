/* The prompt of kymo query: statements that a person types, one after the other. */
#ifndef KYMO_CMDS_PROMPT_PROMPT_H
#define KYMO_CMDS_PROMPT_PROMPT_H

#include <stdbool.h>

struct prompt_host {
	const char *target; /* as of a command line, for completion; NULL: latest */
	/* Runs a statement and prints its result, or an error. Ctrl-C ends only that. */
	void (*run)(void *context, const char *sql);
	void *context;
	bool *untimed; /* whether the time of a statement is left out */
};

/* Until Ctrl-D or .quit. Returns the exit status. */
int prompt_run(const struct prompt_host *host);

#endif
