/*
 * TARGET as host:port or host:port/TARGET: a `kymo serve`, asked by HTTP. A client of our own,
 * since what it asks is plain and short, and a library for it would be loaded by every command.
 */
#ifndef KYMO_CMDS_HTTP_CLIENT_H
#define KYMO_CMDS_HTTP_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* Is it an address rather than a file of that name? NULL is none. */
bool http_client_is(const char *target);
/* GET, or POST where there is a body. The body of the answer in *out; an answer that is an error is
   one in *err. */
int http_client_ask(const char *target, const char *path, const struct buf *body, struct buf *out,
		    struct kymo_error *err);
/* Appends "&key=value" or "?key=value" as a URL wants it. */
void http_client_add(struct buf *path, const char *key, const char *value);
/* What follows the port: "4711" of host:port/4711; "" where nothing does. */
const char *http_client_name(const char *target);
/* Asks, and writes the answer to standard output or to the file. The exit status. */
int http_client_print(const char *command, const char *target, const char *path,
		      const struct buf *body, const char *file, bool force);

#endif
