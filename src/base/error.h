/* Errors: a negative errno and, if the caller wants it, a sentence. */
#ifndef KYMO_BASE_ERROR_H
#define KYMO_BASE_ERROR_H

#include <kymo/kymo.h>

/* Fills *err (may be NULL) and returns -code, for `return error_set(err, EINVAL, …)`. The sentence
   states what failed, on what, why, and what to do. */
int error_set(struct kymo_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
