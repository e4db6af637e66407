/*
 * pprof's profile.proto, plain or gzip: stacks with values. A stack becomes as many samples as its
 * count; they have no times of their own and stand one after another. In an export of kymo the
 * stacks of zones become zones again.
 */
#ifndef KYMO_IMPORT_PROFILES_PPROF_H
#define KYMO_IMPORT_PROFILES_PPROF_H

#include "base/error.h"
#include "import/input/input.h"
#include "import/trace.h"

/* By the first bytes: fields of a Profile, and nothing else. */
bool pprof_is(const char *bytes, size_t count);
/* As import_events(). */
int pprof_read(struct trace *trace, struct input *input, struct kymo_error *damage,
	       struct kymo_error *err);

#endif
