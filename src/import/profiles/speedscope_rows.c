/* From the profiles of a speedscope file to zones and samples. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/profiles/speedscope.h"

#define TIME_MOST (INT64_C(1) << 62)

static const struct json_text speedscope_category = { .at = "speedscope", .bytes = 10 };

/* ---- times --------------------------------------------------------------------------------- */

/* False: no time, or out of range. */
static bool value_ns(const struct speedscope_value *value, int digits, int64_t *out)
{
	int64_t unit = 1, parts = value->parts;

	if (!value->is_known || digits < 0)
		return false;
	for (int i = 0; i < digits; i++)
		unit *= 10;
	for (int i = digits; i < 9; i++)
		parts /= 10;
	return !__builtin_mul_overflow(value->whole, unit, out) &&
	       !__builtin_add_overflow(*out, parts, out) && *out<TIME_MOST && * out> - TIME_MOST;
}

static void speedscope_span(struct trace *trace, const struct speedscope_profile *profile)
{
	int64_t start, end;

	if (!value_ns(&profile->start, profile->unit, &start) ||
	    !value_ns(&profile->end, profile->unit, &end) || start > end)
		return;
	if (!trace->has_span || start < trace->begins_ns)
		trace->begins_ns = start;
	if (!trace->has_span || end > trace->ends_ns)
		trace->ends_ns = end;
	trace->has_span = true;
}

/* ---- threads ------------------------------------------------------------------------------- */

/* The number behind a word, as "thread 12"; -1: none. *at: where the word stands. */
static int64_t number_behind(const char *text, const char *word, const char **at)
{
	const size_t bytes = strlen(word);

	for (*at = text; **at; (*at)++)
		if (!strncasecmp(*at, word, bytes) && isdigit((unsigned char)(*at)[bytes]))
			return (int64_t)strtoull(*at + bytes, NULL, 10);
	return -1;
}

/* kymo: "MainThread, thread 7 of process 5"; py-spy: Process 5 Thread 7 "MainThread". Others are
   threads of one process, with the name of the profile. */
static void place_profile(struct speedscope *own, const struct speedscope_profile *profile,
			  size_t number, struct trace_event *event)
{
	const char *thread_at, *process_at, *quote = strchr(profile->name, '"');
	const int64_t tid = number_behind(profile->name, "thread ", &thread_at);
	const int64_t pid = number_behind(profile->name, "process ", &process_at);
	char name[sizeof(profile->name)];

	snprintf(name, sizeof(name), "%s", profile->name);
	if (tid >= 0 && quote)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(quote + 1, "\""), quote + 1);
	else if (tid >= 0)
		snprintf(name, sizeof(name), "%.*s",
			 thread_at - profile->name > 2 ? (int)(thread_at - profile->name - 2) : 0,
			 profile->name);
	trace_event_clear(event);
	event->pid = (struct json_number){ .value = pid >= 0 ? pid : 1, .is_number = true };
	event->tid = (struct json_number){ .value = tid >= 0 ? tid : (int64_t)number + 1,
					   .is_number = true };
	event->cat = speedscope_category;
	if (name[0])
		trace_name_thread(own->trace, event, name);
}

/* ---- zones --------------------------------------------------------------------------------- */

/* A function with a file is a zone of its language; the category of kymo's own exports tells it. */
static struct json_text frame_category(const struct profile_frame *frame)
{
	if (!frame->file.bytes)
		return speedscope_category;
	return profile_frame_is_python(frame) ? (struct json_text){ .at = "python", .bytes = 6 }
					      : (struct json_text){ .at = "c", .bytes = 1 };
}

static void take_zone_event(struct speedscope *own, const struct speedscope_profile *profile,
			    const struct speedscope_event *from, struct trace_event *event)
{
	const bool known = from->frame < own->frames.count;
	const struct profile_frame *frame = known ? &own->frames.list[from->frame] : NULL;

	event->cat = known ? frame_category(frame) : speedscope_category;
	event->ph = from->type == 'O' ? 'B' : from->type == 'C' ? 'E' : '?';
	event->has = TRACE_EVENT_TS;
	if (event->ph != '?' && (profile->unit < 0 || !from->at.is_known)) {
		event->has = 0;
	} else if (!value_ns(&from->at, profile->unit, &event->ts_ns)) {
		event->has |= TRACE_EVENT_BAD_TIME;
	} else if (event->ph != '?' && !known) {
		trace_count(own->trace, &speedscope_category, event->ph, TRACE_NO_FRAME, 1);
		return;
	}
	if (known) {
		event->name = frame->name;
		event->file = frame->file;
		event->file.at = frame->file.bytes ? frame->file.at : NULL;
		event->line = frame->line;
	}
	trace_take(own->trace, event);
}

static void take_zones(struct speedscope *own, const struct speedscope_profile *profile,
		       size_t number)
{
	struct trace_event event;

	place_profile(own, profile, number, &event);
	for (size_t i = 0; i < profile->event_count; i++)
		take_zone_event(own, profile, &own->events.list[profile->events + i], &event);
}

/* ---- samples ------------------------------------------------------------------------------- */

/* Nodes of the trace for those of the file; NULL: no memory. */
static uint32_t *name_nodes(struct speedscope *own)
{
	const size_t count = own->stacks.nodes.count;
	uint32_t *nodes = calloc(count ? count : 1, sizeof(*nodes));

	for (size_t i = 1; nodes && i < count; i++) {
		const struct profile_node *node = &own->stacks.nodes.list[i];

		if (node->frame < own->frames.count && (!node->parent || nodes[node->parent]))
			nodes[i] = profile_frame_node(own->trace, nodes[node->parent],
						      &own->frames.list[node->frame]);
	}
	return nodes;
}

struct sampling {
	struct speedscope *own;
	const struct speedscope_profile *profile;
	const uint32_t *nodes;
	enum trace_outcome outcome; /* of a sample that is kept */
	uint32_t track;
	int64_t now_ns;
};

/* How many rows a sample is: its weight, where that is a count. */
static uint64_t row_count(const struct sampling *sampling, size_t number, int64_t *weight)
{
	const struct speedscope_profile *profile = sampling->profile;
	const struct speedscope_value *value =
		number < profile->weight_count
			? &sampling->own->weights.list[profile->weights + number]
			: NULL;
	uint64_t count;

	*weight = 0;
	if (profile->unit != -1)
		return value && value_ns(value, profile->unit, weight) && *weight >= 0 ? 1 : 0;
	count = value && value->is_known && value->whole > 0 ? (uint64_t)value->whole : 1;
	return count <= PROFILE_ROWS_MOST - sampling->own->rows ? count : 1;
}

static enum trace_outcome add_sample(struct sampling *sampling, uint32_t node, int64_t weight)
{
	struct trace_sample sample = { .weight_ns = (uint64_t)weight,
				       .node = node,
				       .track = sampling->track };

	if (__builtin_add_overflow(sampling->now_ns, weight ? weight : 1, &sampling->now_ns) ||
	    sampling->now_ns >= TIME_MOST)
		return TRACE_BAD_TIME;
	sample.ts_ns = sampling->now_ns;
	sampling->own->rows += sampling->own->rows < PROFILE_ROWS_MOST;
	return trace_sample(sampling->own->trace, &sample) ? sampling->outcome : TRACE_NO_MEMORY;
}

static void speedscope_take_sample(struct sampling *sampling, size_t number)
{
	const struct speedscope_sample *from =
		&sampling->own->samples.list[sampling->profile->samples + number];
	struct trace *trace = sampling->own->trace;
	const uint32_t node = sampling->nodes[from->node];
	int64_t weight;
	uint64_t count = row_count(sampling, number, &weight);
	enum trace_outcome why = sampling->profile->unit == -2 ? TRACE_NO_TIME
				 : from->is_cut		       ? TRACE_TOO_DEEP
				 : !count		       ? TRACE_BAD_TIME
				 : from->node && !node	       ? TRACE_NO_FRAME
							       : TRACE_SAMPLE;

	if (why != TRACE_SAMPLE) {
		trace_count(trace, &speedscope_category, 'P', why, 1);
		return;
	}
	for (; count; count--)
		trace_count(trace, &speedscope_category, 'P', add_sample(sampling, node, weight),
			    1);
}

static void take_samples(struct speedscope *own, const struct speedscope_profile *profile,
			 size_t number, const uint32_t *nodes)
{
	struct sampling sampling = { .own = own,
				     .profile = profile,
				     .nodes = nodes,
				     .outcome = own->trace->native_samples ? TRACE_NATIVE_SAMPLE
									   : TRACE_SAMPLE };
	struct trace_event event;

	if (!profile->sample_count)
		return;
	place_profile(own, profile, number, &event);
	sampling.track = trace_track(own->trace, &event);
	if (!value_ns(&profile->start, profile->unit, &sampling.now_ns))
		sampling.now_ns = 0;
	for (size_t i = 0; i < profile->sample_count; i++)
		speedscope_take_sample(&sampling, i);
}

/* ---- the file ------------------------------------------------------------------------------ */

static void name_frames(struct speedscope *own)
{
	own->trace->native_samples = true;
	for (size_t i = 0; i < own->frames.count; i++) {
		profile_frame_split(own->trace, &own->frames.list[i], own->of_kymo);
		if (profile_frame_is_python(&own->frames.list[i]))
			own->trace->native_samples = false;
	}
}

void speedscope_end(struct speedscope *own)
{
	uint32_t *nodes;

	name_frames(own);
	if (own->of_kymo)
		own->trace->begins_at_base = true;
	nodes = name_nodes(own);
	for (size_t i = 0; i < own->profiles.count; i++) {
		const struct speedscope_profile *profile = &own->profiles.list[i];

		speedscope_span(own->trace, profile);
		take_zones(own, profile, i);
		if (nodes)
			take_samples(own, profile, i, nodes);
	}
	free(nodes);
	if (own->no_memory)
		trace_count(own->trace, &speedscope_category, 0, TRACE_NO_MEMORY, 1);
}
