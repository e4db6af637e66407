/*
 * Nested JSON of a client, without a copy: a value is checked as a whole, once, and then parts of
 * it are found by their key. Text is decoded by serve/json_read.h.
 */
#ifndef KYMO_CMDS_MCP_JSON_WALK_H
#define KYMO_CMDS_MCP_JSON_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define JSON_WALK_DEPTH 32 /* objects and arrays inside each other; more are refused */

/* A value as it was received, without blanks around it. at is NULL: there is none. */
struct json_part {
	const char *at;
	size_t bytes;
};

/* Whether all bytes are one JSON value (RFC 8259) in UTF-8, of at most JSON_WALK_DEPTH levels. The
   other functions take only parts of such a value. */
bool json_walk_check(const char *bytes, size_t count, struct json_part *out);

/* The member of an object; the first one of that key. None if the part is not an object. A key that
   is written with escapes is not found: no key that is asked for here needs them. */
struct json_part json_walk_member(const struct json_part *object, const char *key);
/* The elements of an array: *at is 0 at first. False: no more, or not an array. */
bool json_walk_next(const struct json_part *array, size_t *at, struct json_part *out);

/* '{', '[', '"', 'n' of null, 't', 'f', '-' and digits; 0: there is none. */
char json_walk_kind(const struct json_part *part);
/* Decodes a text. False: not a text, or it contains NUL. */
bool json_walk_text(const struct json_part *part, struct buf *out);

#endif
