/*
 * The Unix socket beside a port of kymo serve, in the user's directory of live recordings. Commands
 * of the same user connect to it instead of the port: the kernel vouches for both ends, and other
 * users cannot listen there.
 */
#ifndef KYMO_SERVE_ACCESS_LOCAL_SOCKET_H
#define KYMO_SERVE_ACCESS_LOCAL_SOCKET_H

#include "base/error.h"

/* `address` is numeric, as in a URL: 127.0.0.1:8086 or [::1]:8086. */

/* Listens, in place of an earlier server on that address. Returns the socket, or a negative errno
   and *err. */
int local_socket_listen(const char *address, struct kymo_error *err);
/* Returns the socket, or -1 if no server of this user listens there. */
int local_socket_connect(const char *address);
/* Writes a page, readable by the user alone, that leads to the link: arguments of a program, like
   those of a browser, are visible to all users. *out gets its path. */
int local_socket_write_page(const char *address, const char *link, char *out, size_t out_bytes,
			    struct kymo_error *err);
/* Removes the socket and the page. */
void local_socket_remove(const char *address);

#endif
