/* A pprof profile while it is read: all of it, in lists. Names follow the stacks. */
#ifndef KYMO_IMPORT_PROFILES_PPROF_STATE_H
#define KYMO_IMPORT_PROFILES_PPROF_STATE_H

#include "import/input/protobuf_read.h"
#include "import/profiles/profile_stacks.h"

#define PPROF_TYPES_MOST 16u

struct pprof_type {
	uint64_t type, unit; /* numbers of strings */
};

struct pprof_function {
	uint64_t name, file; /* numbers of strings */
};

struct pprof_line {
	uint32_t function; /* number of `functions` */
	int64_t line;
};

struct pprof_location {
	uint64_t address;
	uint32_t mapping; /* number of `mappings`; TRACE_NONE: none */
	uint32_t line, line_count; /* of `lines`, innermost first */
	bool is_known; /* the file has it */
};

struct pprof_mapping {
	uint64_t file; /* number of a string */
};

struct pprof_label {
	uint64_t key, text; /* numbers of strings */
	int64_t number;
};

struct pprof_value {
	int64_t number;
};

struct pprof_sample {
	uint32_t node; /* of `stacks` */
	uint32_t value_count, label_count;
	bool is_cut; /* there was no room for its frames */
	size_t value, label; /* the first of each */
};

struct pprof_id {
	uint64_t id;
};

struct pprof {
	struct trace *trace;
	TRACE_LIST(pprof_type, types);
	TRACE_LIST(json_text, strings);
	TRACE_LIST(pprof_function, functions);
	TRACE_LIST(pprof_location, locations);
	TRACE_LIST(pprof_line, lines);
	TRACE_LIST(pprof_mapping, mappings);
	TRACE_LIST(pprof_sample, samples);
	TRACE_LIST(pprof_label, labels);
	TRACE_LIST(pprof_value, values);
	struct profile_stacks stacks;
	/* Numbers of ids: what refers to something may come before it. */
	struct pprof_ids {
		TRACE_LIST(pprof_id, list);
		struct intern index;
	} function_ids, location_ids, mapping_ids;
	struct pprof_type period_type;
	uint64_t default_type; /* number of a string; 0: none */
	int64_t time_ns, duration_ns, period;
	uint64_t rows; /* of samples and zones so far */
	bool no_memory;
};

/* "" if there is no such string. */
struct json_text pprof_string(const struct pprof *own, uint64_t number);
bool pprof_is_word(const struct pprof *own, uint64_t number, const char *word);
/* The name of a frame; false: the file does not have it. line: 0 is the innermost. */
bool pprof_frame(struct pprof *own, uint32_t location, uint32_t line, struct profile_frame *out);

/* pprof_rows.c: hands all of it to the trace. 0, or an error: its values are neither times nor
   counts. */
int pprof_end(struct pprof *own, struct kymo_error *err);
/* pprof_zones.c: stacks of zones in an export of kymo; values 0 and 1 are count and self time. */
void pprof_zones(struct pprof *own);

#endif
