/* kymo run --serve: a viewer beside the program. */
#ifndef KYMO_CMDS_RUN_RUN_SERVE_H
#define KYMO_CMDS_RUN_RUN_SERVE_H

#include <stdbool.h>

struct run_serve {
	bool on;
	const char *port; /* NULL: 8086, or the next one that is free */
};

/* -1, or the exit status: that is no port. */
int run_serve_word(struct run_serve *serve, const char *port);
/* Starts it and says where it is. It is a process and a session of its own, and stays while
   somebody looks. What goes wrong is said, and keeps no program from running. */
void run_serve_start(const struct run_serve *serve);

#endif
