/* Reading the file; speedscope_rows.c makes rows of it. */
#include "import/profiles/speedscope.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

#define PARTS 1000000000

/* ---- values -------------------------------------------------------------------------------- */

static bool take_speedscope_value(struct json_scan *scan, struct speedscope_value *out)
{
	const char *from = scan->at;
	struct json_number whole, parts;

	if (!json_scan_number(scan, 0, &whole))
		return false;
	*out = (struct speedscope_value){ .whole = whole.value,
					  .is_known = whole.is_number && !whole.out_of_range };
	if (!out->is_known)
		return true;
	scan->at = from;
	if (!json_scan_number(scan, 9, &parts))
		return false;
	/* Beyond 2^63 of 10^-9 a double has no such digits anyway. */
	if (!parts.out_of_range)
		out->parts = (int32_t)(parts.value - whole.value * PARTS);
	return true;
}

static bool take_start(void *context, struct json_scan *scan)
{
	return take_speedscope_value(scan, &((struct speedscope_profile *)context)->start);
}

static bool take_profile_end(void *context, struct json_scan *scan)
{
	return take_speedscope_value(scan, &((struct speedscope_profile *)context)->end);
}

static bool take_plain(struct json_scan *scan, char *out, size_t bytes)
{
	struct json_text text;

	if (json_scan_next(scan) != '"')
		return json_scan_skip(scan);
	if (!json_scan_text(scan, &text))
		return false;
	json_text_plain(&text, out, bytes);
	return true;
}

static bool take_profile_name(void *context, struct json_scan *scan)
{
	struct speedscope_profile *profile = context;

	return take_plain(scan, profile->name, sizeof(profile->name));
}

static bool take_unit(void *context, struct json_scan *scan)
{
	static const struct {
		const char *word;
		int digits;
	} units[] = { { "nanoseconds", 0 },
		      { "microseconds", 3 },
		      { "milliseconds", 6 },
		      { "seconds", 9 },
		      { "bytes", -2 } };
	struct speedscope_profile *profile = context;
	char text[32] = "";

	if (!take_plain(scan, text, sizeof(text)))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(text, units[i].word))
			profile->unit = units[i].digits;
	return true;
}

/* ---- lists of a profile -------------------------------------------------------------------- */

static bool take_speedscope_event(void *context, struct json_scan *scan)
{
	struct speedscope *own = context;
	struct speedscope_event event = { .frame = TRACE_NONE }, *kept;
	struct json_number number;
	struct json_text key;
	char text[4] = "";
	bool is_object;

	is_object = json_scan_next(scan) == '{';
	if (!is_object && !json_scan_skip(scan))
		return false;
	scan->at += is_object;
	while (is_object && json_scan_key(scan, &key)) {
		if (JSON_TEXT_IS(&key, "type")) {
			if (!take_plain(scan, text, sizeof(text)))
				return false;
			event.type = text[0] && !text[1] ? text[0] : '?';
		} else if (JSON_TEXT_IS(&key, "at")) {
			if (!take_speedscope_value(scan, &event.at))
				return false;
		} else if (JSON_TEXT_IS(&key, "frame")) {
			if (!json_scan_number(scan, 0, &number))
				return false;
			if (number.is_number && number.value >= 0 && number.value < TRACE_NONE)
				event.frame = (uint32_t)number.value;
		} else if (!json_scan_skip(scan)) {
			return false;
		}
	}
	if (scan->state != JSON_OK)
		return false;
	kept = TRACE_ADD(&own->events);
	if (kept)
		*kept = event;
	else
		own->no_memory = true;
	return true;
}

static bool take_speedscope_sample(void *context, struct json_scan *scan)
{
	struct speedscope *own = context;
	struct speedscope_sample sample = { 0 }, *kept;
	struct json_number number;
	uint32_t depth = 0;
	bool is_list;

	sample.is_cut = json_scan_next(scan) != '[';
	if (sample.is_cut && !json_scan_skip(scan))
		return false;
	is_list = !sample.is_cut;
	scan->at += is_list;
	while (is_list && json_scan_item(scan)) {
		if (!json_scan_number(scan, 0, &number))
			return false;
		if (depth++ >= PROFILE_DEPTH_MOST || sample.is_cut)
			continue;
		sample.node = profile_stacks_node(&own->stacks, sample.node,
						  number.is_number && number.value >= 0 &&
								  number.value < TRACE_NONE
							  ? (uint32_t)number.value
							  : TRACE_NONE);
		sample.is_cut = !sample.node;
	}
	if (scan->state != JSON_OK)
		return false;
	kept = TRACE_ADD(&own->samples);
	if (kept)
		*kept = sample;
	else
		own->no_memory = true;
	return true;
}

static bool take_weight(void *context, struct json_scan *scan)
{
	struct speedscope *own = context;
	struct speedscope_value value, *kept;

	if (!take_speedscope_value(scan, &value))
		return false;
	kept = TRACE_ADD(&own->weights);
	if (kept)
		*kept = value;
	else
		own->no_memory = true;
	return true;
}

/* At the [ of a list. */
static bool take_list(struct speedscope *own, struct json_stream *stream,
		      bool (*take)(void *context, struct json_scan *scan))
{
	const struct import_options *options = own->trace->options;
	uint64_t taken = 0;

	if (json_stream_next(stream) != '[')
		return json_stream_skip(stream);
	stream->scan.at++;
	while (json_stream_item(stream)) {
		if (!json_stream_value(stream, take, own))
			return false;
		if (options->progress && taken++ % 4096 == 0)
			options->progress(options->context, stream->input->read_bytes,
					  stream->input->file_bytes);
	}
	return stream->scan.state == JSON_OK;
}

/* ---- profiles ------------------------------------------------------------------------------ */

static const struct {
	const char *key;
	bool (*take)(void *context, struct json_scan *scan);
	bool is_list;
} profile_members[] = {
	{ "name", take_profile_name, false },	   { "unit", take_unit, false },
	{ "startValue", take_start, false },	   { "endValue", take_profile_end, false },
	{ "events", take_speedscope_event, true }, { "samples", take_speedscope_sample, true },
	{ "weights", take_weight, true },
};

static bool take_member(struct speedscope *own, struct speedscope_profile *profile,
			struct json_stream *stream, const struct json_text *key)
{
	for (size_t i = 0; i < sizeof(profile_members) / sizeof(profile_members[0]); i++)
		if (json_text_is(key, profile_members[i].key, strlen(profile_members[i].key)))
			return profile_members[i].is_list
				       ? take_list(own, stream, profile_members[i].take)
				       : json_stream_value(stream, profile_members[i].take,
							   profile);
	return json_stream_skip(stream);
}

/* At a {. A profile that is cut is kept up to there. */
static bool take_profile(struct speedscope *own, struct json_stream *stream)
{
	struct speedscope_profile profile = { .unit = -1,
					      .events = own->events.count,
					      .samples = own->samples.count,
					      .weights = own->weights.count };
	struct speedscope_profile *kept;
	struct json_text key;
	bool whole = true;

	stream->scan.at++;
	while (whole && json_stream_key(stream, &key))
		whole = take_member(own, &profile, stream, &key);
	whole = whole && stream->scan.state == JSON_OK;
	profile.event_count = own->events.count - profile.events;
	profile.sample_count = own->samples.count - profile.samples;
	profile.weight_count = own->weights.count - profile.weights;
	kept = TRACE_ADD(&own->profiles);
	if (kept)
		*kept = profile;
	else
		own->no_memory = true;
	return whole;
}

bool speedscope_profiles(struct speedscope *own, struct json_stream *stream)
{
	own->any = true;
	while (json_stream_item(stream))
		if (json_stream_next(stream) == '{' ? !take_profile(own, stream)
						    : !json_stream_skip(stream))
			return false;
	return stream->scan.state == JSON_OK;
}

/* ---- frames -------------------------------------------------------------------------------- */

static bool keep_json_text(struct trace *trace, struct json_scan *scan, struct json_text *out)
{
	if (json_scan_next(scan) != '"')
		return json_scan_skip(scan);
	if (!json_scan_text(scan, out))
		return false;
	out->at = trace_keep(trace, out->at, out->bytes);
	if (!out->at)
		out->bytes = 0;
	return true;
}

static bool take_speedscope_frame(void *context, struct json_scan *scan)
{
	struct speedscope *own = context;
	struct profile_frame frame = { 0 }, *kept;
	struct json_number number;
	struct json_text key;
	bool is_object = json_scan_next(scan) == '{';

	if (!is_object && !json_scan_skip(scan))
		return false;
	scan->at += is_object;
	while (is_object && json_scan_key(scan, &key)) {
		bool taken;

		if (JSON_TEXT_IS(&key, "name")) {
			taken = keep_json_text(own->trace, scan, &frame.name);
		} else if (JSON_TEXT_IS(&key, "file")) {
			taken = keep_json_text(own->trace, scan, &frame.file);
		} else {
			taken = json_scan_number(scan, 0, &number);
			if (taken && number.is_number && JSON_TEXT_IS(&key, "line"))
				frame.line = number.value;
		}
		if (!taken)
			return false;
	}
	if (scan->state != JSON_OK)
		return false;
	kept = TRACE_ADD(&own->frames);
	if (kept)
		*kept = frame;
	else
		own->no_memory = true;
	return true;
}

bool speedscope_shared(struct speedscope *own, struct json_stream *stream)
{
	struct json_text key;

	while (json_stream_key(stream, &key))
		if (JSON_TEXT_IS(&key, "frames") ? !take_list(own, stream, take_speedscope_frame)
						 : !json_stream_skip(stream))
			return false;
	return stream->scan.state == JSON_OK;
}

static bool take_exporter(void *context, struct json_scan *scan)
{
	struct speedscope *own = context;
	char text[32] = "";

	if (!take_plain(scan, text, sizeof(text)))
		return false;
	own->of_kymo = !strncmp(text, "kymo ", 5);
	return true;
}

bool speedscope_exporter(struct speedscope *own, struct json_stream *stream)
{
	return json_stream_value(stream, take_exporter, own);
}

void speedscope_fini(struct speedscope *own)
{
	free(own->frames.list);
	free(own->profiles.list);
	free(own->events.list);
	free(own->samples.list);
	free(own->weights.list);
	profile_stacks_fini(&own->stacks);
	memset(own, 0, sizeof(*own));
}
