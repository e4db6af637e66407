/*
 * kymo serve: HTTP over recordings. docs/api.md says what is answered.
 *
 * Threads: libmicrohttpd's two do nothing but I/O; requests are answered by workers (jobs.c), those
 * that may take long (SQL, reports) apart from those that must not (the list, zones); one more
 * looks for what is new and tells it to those who wait (tail.c). A slow client costs a connection
 * and no thread.
 */
#ifndef KYMO_SERVE_SERVE_H
#define KYMO_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SERVE_PORT 8086

struct serve_options {
	const char *listen; /* an address; NULL: 127.0.0.1 */
	uint16_t port; /* 0: SERVE_PORT, or the next one that is free */
	bool port_fixed; /* no other port will do */
	const char *const *targets; /* paths; they come first in the list */
	size_t target_count;
	const char *hosts; /* further names of this machine, parted by commas; NULL: none */
	const char *token; /* NULL: none is asked for on loopback, and one is made elsewhere */
	double zoom; /* of the page; 0: as it is */
	/* ends a while after that process has, unless somebody looks; 0: never */
	int32_t while_pid;
};

/* What it has become, for who prints it. */
struct serve_address {
	char host[64]; /* as in a URL */
	uint16_t port;
	bool port_taken; /* the one that was asked for was */
	char token[64]; /* "": none is needed */
	bool users_known; /* on loopback: whether a connection's owner can be found out */
};

/* Listens. 0, or a negative errno and *err. */
int serve_start(const struct serve_options *options, struct serve_address *out,
		struct kymo_error *err);
/* Until SIGINT or SIGTERM. The caller exits then; nothing is left to be put away. */
void serve_wait(void);

#endif
