/*
 * Dumps of PyTorch's flight recorder: the last collectives of a rank with their states, as JSON or
 * as a pickle. They show what a rank has enqueued, so that a rank that is absent, and one that
 * called something else, are found where the dumps of several ranks are imported together.
 */
#ifndef KYMO_IMPORT_FLIGHT_FLIGHT_H
#define KYMO_IMPORT_FLIGHT_FLIGHT_H

#include "base/error.h"
#include "import/input/input.h"
#include "import/trace.h"

/* Reads a pickle; as import_events(). */
int flight_read_pickle(struct trace *trace, struct input *input, struct kymo_error *damage,
		       struct kymo_error *err);
/* An entry; scan->at is at its {. False: see scan->state. */
bool flight_entry(struct trace *trace, struct json_scan *scan);
/* pg_config, an object; the same. */
bool flight_groups(struct trace *trace, struct json_scan *scan);

#endif
