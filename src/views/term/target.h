/* TARGET of a command: a recording, or a trace of another tool, which is imported first. */
#ifndef KYMO_VIEWS_TERM_TARGET_H
#define KYMO_VIEWS_TERM_TARGET_H

#include <stddef.h>

#include "base/error.h"

/* As store_resolve(). Shows the progress of an import on a terminal, and prints a line on stderr if
   only a part of the trace could be read. */
int target_resolve(const char *target, char *out, size_t out_bytes, struct kymo_error *err);
/* The same of several traces, which become one recording. */
int target_resolve_files(const char *const *files, size_t count, char *out, size_t out_bytes,
			 struct kymo_error *err);

#endif
