/*
 * One event of a Chrome or Kineto trace, as it stands in the file: the fields that importers use,
 * whichever of their old and new names the file has. Texts point into the window of the input.
 */
#ifndef KYMO_IMPORT_TRACE_EVENT_H
#define KYMO_IMPORT_TRACE_EVENT_H

#include "import/json_scan.h"

/* Which of the fields below are set. */
enum trace_event_has {
	TRACE_EVENT_TS = 1,
	TRACE_EVENT_DUR = 2,
	TRACE_EVENT_CORRELATION = 4,
	TRACE_EVENT_EXTERNAL = 8,
	TRACE_EVENT_SEQUENCE = 16,
	TRACE_EVENT_DEVICE = 32,
	TRACE_EVENT_STREAM = 64,
	TRACE_EVENT_TOTAL = 128,
	TRACE_EVENT_BAD_TIME = 256, /* a time beyond 2^62 ns, or not a number */
	TRACE_EVENT_MEMORY = 512, /* Device Type and Device Id */
	TRACE_EVENT_STEP = 1024,
	TRACE_EVENT_OWNER = 2048, /* the pid that launched an operation */
	TRACE_EVENT_VALUE = 4096, /* of a counter, if it is not in `args` */
};

/* The arguments of a collective, of record_param_comms and of its kernels. */
struct trace_event_comm {
	struct json_text name, dtype, group, group_text, ranks; /* at NULL: not there */
	int64_t in_elements, out_elements, group_size, sequence; /* -1: not there */
};

struct trace_event {
	uint32_t has;
	char ph; /* 0: none */
	struct json_text name, cat; /* bytes 0: none */
	struct json_text args; /* the object, with its braces; bytes 0: none */
	struct json_number pid, tid, id;
	int64_t ts_ns, dur_ns;
	int64_t device, context, stream;
	int64_t correlation, external, sequence, forward_thread;
	int64_t bytes, total_bytes;
	int64_t device_type, device_id, graph;
	struct trace_event_comm comm;
	struct json_text file; /* of a zone, in exports of kymo; at NULL: not there */
	int64_t line, step, cut_ns, owner;
	double value;
};

void trace_event_clear(struct trace_event *event);
/* scan->at is at the {. False: see scan->state. */
bool trace_event_read(struct json_scan *scan, struct trace_event *out);

#endif
