/*
 * speedscope's JSON: evented profiles become zones, sampled ones stack samples. Frames may follow
 * the profiles, so that both are kept (20 bytes an event) and handed over at the end.
 */
#ifndef KYMO_IMPORT_PROFILES_SPEEDSCOPE_H
#define KYMO_IMPORT_PROFILES_SPEEDSCOPE_H

#include "import/input/json_stream.h"
#include "import/profiles/profile_stacks.h"

/* A number of the file, whose unit may follow. */
struct speedscope_value {
	int64_t whole;
	int32_t parts; /* of 10^-9 */
	bool is_known;
};

struct speedscope_event {
	struct speedscope_value at;
	uint32_t frame;
	char type; /* O, C; other: not an event */
};

struct speedscope_sample {
	uint32_t node;
	bool is_cut; /* there was no room for its frames */
};

struct speedscope_profile {
	char name[160];
	int unit; /* digits of a ns in it: 9 for seconds; -1: no time; -2: bytes */
	struct speedscope_value start, end;
	size_t events, event_count; /* numbers of the first */
	size_t samples, sample_count;
	size_t weights, weight_count;
};

struct speedscope {
	struct trace *trace;
	TRACE_LIST(profile_frame, frames);
	TRACE_LIST(speedscope_profile, profiles);
	TRACE_LIST(speedscope_event, events);
	TRACE_LIST(speedscope_sample, samples);
	TRACE_LIST(speedscope_value, weights);
	struct profile_stacks stacks;
	uint64_t rows; /* of samples so far */
	bool any; /* there was a list of profiles */
	bool of_kymo;
	bool no_memory;
};

/* After the [ of "profiles"; after the { of "shared". False: cut, or not JSON. */
bool speedscope_profiles(struct speedscope *own, struct json_stream *stream);
bool speedscope_shared(struct speedscope *own, struct json_stream *stream);
/* The value of "exporter". */
bool speedscope_exporter(struct speedscope *own, struct json_stream *stream);
/* Hands all of it to the trace. */
void speedscope_end(struct speedscope *own);
void speedscope_fini(struct speedscope *own);

#endif
