/* The token that kymo serve prints, and the secrets of its cookies. */
#ifndef KYMO_SERVE_ACCESS_TOKEN_H
#define KYMO_SERVE_ACCESS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_BYTES 64

/* 192 random bits as 48 digits, padded with zeros. 0, or -EIO. */
int token_make(char out[TOKEN_BYTES]);
/* Compares with a secret that is padded with zeros. The instructions that are executed depend on
   the length of `given`, and on nothing else. An empty secret equals nothing. */
bool token_equals(const char secret[TOKEN_BYTES], const char *given, size_t given_bytes);
/*
 * The secret of the cookies of a user (-1: unknown), made at the first call and the same until the
 * server ends. Browsers send cookies to all ports of a host, so the server of another user on this
 * machine may see one; it is worthless to that user. NULL: too many users.
 */
const char *token_session(int64_t uid);

#endif
