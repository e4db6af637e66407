/*
 * Perfetto's protobuf traces: track events, as kymo export writes them and as the tracing SDK does.
 * Other packets (the kernel's, profilers' samples) are counted and skipped. Slices become zones,
 * instants marks; names, categories and places may be interned.
 */
#ifndef KYMO_IMPORT_PERFETTO_PERFETTO_H
#define KYMO_IMPORT_PERFETTO_PERFETTO_H

#include "base/error.h"
#include "import/input/input.h"
#include "import/trace.h"

/* By the first bytes: they begin with a packet, whose fields are well-formed. */
bool perfetto_is(const char *bytes, size_t count);
/* As import_events(). */
int perfetto_read(struct trace *trace, struct input *input, struct kymo_error *damage,
		  struct kymo_error *err);

#endif
