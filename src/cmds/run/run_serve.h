/* kymo run --serve: starts a viewer next to the program. */
#ifndef KYMO_CMDS_RUN_RUN_SERVE_H
#define KYMO_CMDS_RUN_RUN_SERVE_H

#include <stdbool.h>

struct run_serve {
	bool on;
	const char *port; /* NULL: 8086, or the next free one */
};

/* -1, or the exit status if the port is invalid. */
int run_serve_word(struct run_serve *serve, const char *port);
/* Starts the viewer in a session of its own and prints its address. It stays while a client is
   connected. An error is reported and does not stop the run. */
void run_serve_start(const struct run_serve *serve);

#endif
