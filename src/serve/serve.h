/*
 * kymo serve: HTTP over recordings. docs/api.md describes the interface.
 *
 * Threads: two of libmicrohttpd for I/O; workers that answer requests (workers.c), separate for
 * fast ones (the list, zones), slow ones (runs, reports) and queries of clients; one that reads new
 * rows and sends events (events.c); one that starts the processes that run SQL (children.h). A slow
 * client costs a connection but no thread.
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
	uint16_t port; /* 0: SERVE_PORT, or the next free one */
	bool port_fixed; /* fail if the port is taken */
	const char *const *targets; /* paths; they come first in the list of targets */
	size_t target_count;
	const char *hosts; /* further names of this machine, separated by commas; NULL: none */
	const char *token; /* required of all clients on TCP; NULL: a random one */
	bool require_token; /* also of the same user on loopback */
	double zoom; /* of the page; 0: the default */
	/* exit when that process has ended and no client is connected; 0: never */
	int32_t while_pid;
};

/* The address of the server. */
struct serve_address {
	char host[64]; /* as in a URL */
	uint16_t port;
	bool port_taken; /* the requested one was taken */
	char token[64];
	bool token_required; /* also of the user of the server, on TCP */
	bool users_known; /* on loopback: whether the kernel identifies the user of a connection */
	char local[80]; /* names the Unix socket (local_socket.h) */
	struct kymo_error local_error; /* why there is none; "": there is */
};

/* Listens. 0, or a negative errno and *err. */
int serve_start(const struct serve_options *options, struct serve_address *out,
		struct kymo_error *err);
/* Runs until SIGINT or SIGTERM, and removes the Unix socket. The caller exits then. */
void serve_wait(void);

#endif
