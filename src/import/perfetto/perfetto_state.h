/* Tracks and interned texts of a Perfetto trace. */
#ifndef KYMO_IMPORT_PERFETTO_PERFETTO_STATE_H
#define KYMO_IMPORT_PERFETTO_PERFETTO_STATE_H

#include "base/intern.h"
#include "import/input/protobuf_read.h"
#include "import/trace.h"

struct perfetto_track {
	uint64_t uuid, parent; /* parent 0: none */
	int64_t pid, tid;
	bool has_process, has_thread; /* it has a pid; it has both */
	bool has_own; /* its slices are rows of kymo, not zones */
	struct json_text name;
};

enum perfetto_text_kind {
	PERFETTO_CATEGORY = 1,
	PERFETTO_NAME = 2,
	PERFETTO_ANNOTATION = 3,
	PERFETTO_LOCATION = 4,
};

struct perfetto_text {
	uint64_t sequence; /* with its generation */
	uint64_t iid;
	uint32_t kind;
	uint32_t line; /* of a location */
	struct json_text text;
};

struct perfetto_sequence {
	uint64_t id;
	uint64_t generation; /* counts clearings */
	uint64_t default_track; /* 0: none */
};

struct perfetto_state {
	struct trace *trace;
	TRACE_LIST(perfetto_track, tracks);
	TRACE_LIST(perfetto_text, texts);
	TRACE_LIST(perfetto_sequence, sequences);
	struct intern track_index, text_index, sequence_index;
};

void perfetto_state_fini(struct perfetto_state *state);
/* NULL: unknown, or no memory if it is to be added. */
struct perfetto_track *perfetto_track(struct perfetto_state *state, uint64_t uuid, bool add);
struct perfetto_sequence *perfetto_sequence(struct perfetto_state *state, uint64_t id);
const struct perfetto_text *perfetto_text(struct perfetto_state *state,
					  const struct perfetto_sequence *sequence, uint32_t kind,
					  uint64_t iid);
/* The field is an entry of InternedData. */
void perfetto_intern(struct perfetto_state *state, const struct perfetto_sequence *sequence,
		     uint32_t kind, const struct protobuf_field *field);
/* The field is a TrackDescriptor. */
void perfetto_describe(struct perfetto_state *state, const struct protobuf_field *field);
/* A copy that stays. */
struct json_text perfetto_keep(struct perfetto_state *state, const struct protobuf_field *field);

#endif
