/*
 * An HTTP client for TARGET as host:port or host:port/TARGET, a `kymo serve`. The requests are
 * simple and short, and a library would be loaded by every command.
 */
#ifndef KYMO_CMDS_HTTP_CLIENT_H
#define KYMO_CMDS_HTTP_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* True for an address that is not the name of a file. NULL is not an address. */
bool http_client_is(const char *target);
/* GET, or POST if there is a body. *out gets the body of the response; an error response becomes
   *err. */
int http_client_ask(const char *target, const char *path, const struct buf *body, struct buf *out,
		    struct kymo_error *err);
/* Appends "&key=value" or "?key=value", escaped for a URL. */
void http_client_add(struct buf *path, const char *key, const char *value);
/* The part after the port: "4711" for host:port/4711, else "". */
const char *http_client_name(const char *target);
/* Sends the request and writes the response to standard output or to the file. Returns the exit
   status. */
int http_client_print(const char *command, const char *target, const char *path,
		      const struct buf *body, const char *file, bool force);

#endif
