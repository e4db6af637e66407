/*
 * The other ends of connections: who they are, and how many each may have.
 *
 * The kernel is asked once, when a connection is accepted. A peer that it does not identify then is
 * unknown for as long as the connection lasts, and needs the token.
 */
#ifndef KYMO_SERVE_ACCESS_PEERS_H
#define KYMO_SERVE_ACCESS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peer_kind {
	PEER_UNKNOWN, /* on this machine, not identified */
	PEER_OWNER, /* the user of the server; on the Unix socket also root */
	PEER_OTHER, /* another user of this machine */
	PEER_REMOTE, /* not on loopback */
};

struct peer {
	enum peer_kind kind;
	bool by_socket; /* on the Unix socket */
	int64_t uid; /* -1: unknown */
	int fd;
	/* Under the lock of peers.c: */
	bool trusted; /* has sent the token */
	bool dropped; /* shut down, no longer counted */
	struct peer *newer;
};

/* Opens the socket that asks the kernel, which stays open: a look-up needs no descriptor later.
   `most` connections are expected in all. */
void peers_start(size_t most);
/* Identifies a new connection, and drops the oldest one without a token if its user, or all users
   but the owner, have too many. NULL: out of memory. */
struct peer *peers_enter(int fd);
void peers_leave(struct peer *peer); /* NULL is allowed */
/* The peer has sent the token: its connection is not dropped for others. */
void peers_trust(struct peer *peer);
/* Whether the kernel identifies a connection of this process to the listening socket. */
bool peers_can_identify(int listening);

#endif
