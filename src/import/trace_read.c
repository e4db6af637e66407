/* The frame of a trace: an array of events, or an object with traceEvents and facts about the run.
   Other members are skipped unread: traces carry environments, with passwords in them. */
#include <errno.h>
#include <stdio.h>

#include "import/flight/flight.h"
#include "import/import.h"
#include "import/input/json_stream.h"
#include "import/profiles/speedscope.h"
#include "import/trace.h"

#define PROGRESS_EVENTS 4096u

struct reader {
	struct trace *trace;
	struct json_stream stream;
	struct speedscope speedscope;
	bool any_list; /* there was a list of events */
	bool in_flights; /* the list is that of a flight recorder */
};

/* ---- events -------------------------------------------------------------------------------- */

static void read_progress(const struct reader *reader)
{
	const struct import_options *options = reader->trace->options;

	if (options->progress && reader->trace->events % PROGRESS_EVENTS == 0)
		options->progress(options->context, reader->stream.input->read_bytes,
				  reader->stream.input->file_bytes);
}

static bool skip_long_event(struct reader *reader, enum trace_outcome why)
{
	reader->stream.scan.state = JSON_OK;
	trace_count(reader->trace, NULL, 0, why, 1);
	return json_stream_skip(&reader->stream);
}

static bool read_flight_or_event(struct reader *reader)
{
	struct trace_event event;

	if (reader->in_flights)
		return flight_entry(reader->trace, &reader->stream.scan);
	if (!trace_event_read(&reader->stream.scan, &event))
		return false;
	trace_take(reader->trace, &event);
	return true;
}

/* At a {. False: the file is cut or is not JSON. */
static bool read_event(struct reader *reader)
{
	for (;;) {
		const char *from = reader->stream.scan.at;

		if (read_flight_or_event(reader))
			break;
		reader->stream.scan.at = from;
		if (reader->stream.scan.state == JSON_BAD)
			return false;
		if (json_stream_more(&reader->stream))
			continue;
		return !reader->stream.input->ended && skip_long_event(reader, TRACE_TOO_LONG);
	}
	read_progress(reader);
	return true;
}

/* After the [. */
static bool read_events(struct reader *reader, bool flights)
{
	reader->any_list = true;
	reader->in_flights = flights;
	for (;;) {
		char c = json_stream_next(&reader->stream);

		switch (c) {
		case ',': reader->stream.scan.at++; break;
		case ']': reader->stream.scan.at++; return true;
		case '{':
			if (!read_event(reader))
				return false;
			break;
		case 0: return false;
		default:
			if (!skip_long_event(reader, TRACE_NOT_EVENT))
				return false;
		}
	}
}

/* ---- facts --------------------------------------------------------------------------------- */

static void read_distributed(struct reader *reader)
{
	struct json_scan *scan = &reader->stream.scan;
	struct json_number number;
	struct json_text key;

	if (*scan->at != '{') {
		json_scan_skip(scan);
		return;
	}
	scan->at++;
	while (json_scan_key(scan, &key)) {
		if (!json_scan_number(scan, 0, &number))
			return;
		if (!number.is_number || number.value < 0 || number.value > INT32_MAX)
			continue;
		if (JSON_TEXT_IS(&key, "rank"))
			reader->trace->rank = (int32_t)number.value;
		else if (JSON_TEXT_IS(&key, "world_size"))
			reader->trace->ranks = (int32_t)number.value;
	}
}

static void read_base(struct reader *reader)
{
	struct json_number number;

	if (json_scan_number(&reader->stream.scan, 0, &number) && number.is_number &&
	    !number.out_of_range && number.value >= 0 && number.value < INT64_C(1) << 62)
		reader->trace->base_ns = number.value;
}

static void read_host(struct reader *reader)
{
	struct json_text text;

	if (*reader->stream.scan.at != '"')
		json_scan_skip(&reader->stream.scan);
	else if (json_scan_text(&reader->stream.scan, &text))
		json_text_plain(&text, reader->trace->host, sizeof(reader->trace->host));
}

static void read_groups(struct reader *reader)
{
	flight_groups(reader->trace, &reader->stream.scan);
}

/* Exports of kymo begin when the recording began, not at the first event. */
static void read_other(struct reader *reader)
{
	struct json_scan *scan = &reader->stream.scan;
	struct json_text key, text;

	if (*scan->at != '{') {
		json_scan_skip(scan);
		return;
	}
	scan->at++;
	while (json_scan_key(scan, &key)) {
		if (!JSON_TEXT_IS(&key, "recorder") || json_scan_next(scan) != '"') {
			if (!json_scan_skip(scan))
				return;
			continue;
		}
		if (!json_scan_text(scan, &text))
			return;
		reader->trace->begins_at_base = text.bytes > 5 && !memcmp(text.at, "kymo ", 5);
	}
}

/* A value that must be whole in the window. False: it does not end. */
static bool read_fact(struct reader *reader, void (*read)(struct reader *reader))
{
	for (;;) {
		const char *from = reader->stream.scan.at;

		reader->stream.scan.state = JSON_OK;
		read(reader);
		if (reader->stream.scan.state == JSON_OK)
			return true;
		reader->stream.scan.at = from;
		if (reader->stream.scan.state == JSON_BAD || !json_stream_more(&reader->stream))
			return false;
	}
}

static const struct {
	const char *key;
	void (*read)(struct reader *reader);
} facts[] = {
	{ "distributedInfo", read_distributed },
	{ "baseTimeNanoseconds", read_base },
	{ "host_name", read_host },
	{ "pg_config", read_groups },
	{ "otherData", read_other },
};

/* After the colon. */
static bool read_member(struct reader *reader, const struct json_text *key)
{
	const bool events = JSON_TEXT_IS(key, "traceEvents"),
		   flights = JSON_TEXT_IS(key, "entries"), profiles = JSON_TEXT_IS(key, "profiles"),
		   shared = JSON_TEXT_IS(key, "shared"), exporter = JSON_TEXT_IS(key, "exporter");
	void (*read)(struct reader *) = NULL;
	char c;

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (json_text_is(key, facts[i].key, strlen(facts[i].key)))
			read = facts[i].read;
	c = json_stream_next(&reader->stream); /* moves the window: key is not valid from here on */
	if ((events || flights) && c == '[') {
		reader->stream.scan.at++;
		return read_events(reader, flights);
	}
	if ((profiles && c == '[') || (shared && c == '{')) {
		reader->stream.scan.at++;
		return profiles ? speedscope_profiles(&reader->speedscope, &reader->stream)
				: speedscope_shared(&reader->speedscope, &reader->stream);
	}
	if (exporter)
		return speedscope_exporter(&reader->speedscope, &reader->stream);
	return read ? read_fact(reader, read) : json_stream_skip(&reader->stream);
}

/* After the {. */
static bool read_object(struct reader *reader)
{
	struct json_text key;

	while (json_stream_key(&reader->stream, &key)) {
		if (!read_member(reader, &key))
			return false;
		reader->stream.scan.state = JSON_OK;
	}
	return reader->stream.scan.state == JSON_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void say_damage(const struct reader *reader, struct kymo_error *damage)
{
	const unsigned long long at = input_offset(reader->stream.input, &reader->stream.scan);

	if (reader->stream.input->damage.code)
		error_set(damage, EPROTO,
			  "%s, at byte %llu of the trace; %llu events before it are kept",
			  reader->stream.input->damage.text, at,
			  (unsigned long long)reader->trace->events);
	else if (reader->stream.input->ended && reader->stream.scan.state != JSON_BAD)
		error_set(damage, ENODATA, "it is truncated at byte %llu; %llu events are kept", at,
			  (unsigned long long)reader->trace->events);
	else
		error_set(damage, EPROTO,
			  "it is not JSON at byte %llu; %llu events before it are kept", at,
			  (unsigned long long)reader->trace->events);
}

int import_events(struct trace *trace, struct input *input, struct kymo_error *damage,
		  struct kymo_error *err)
{
	struct reader reader = { .trace = trace, .stream.input = input, .speedscope.trace = trace };
	bool complete = false;
	char c;

	if (!input_more(input, &reader.stream.scan) && input->damage.code)
		return error_set(err, EPROTO, "%s", input->damage.text);
	if (reader.stream.scan.end - reader.stream.scan.at >= 3 &&
	    !memcmp(reader.stream.scan.at, "\xef\xbb\xbf", 3))
		reader.stream.scan.at += 3;
	c = reader.stream.scan.at ? json_stream_next(&reader.stream) : 0;
	if (c == '[' || c == '{') {
		reader.stream.scan.at++;
		complete = c == '[' ? read_events(&reader, false) : read_object(&reader);
	}
	if (reader.speedscope.any) {
		speedscope_end(&reader.speedscope);
		reader.any_list = true;
	}
	speedscope_fini(&reader.speedscope);
	if (!c)
		return error_set(err, ENODATA, "it is empty");
	if (!reader.any_list)
		return error_set(
			err, EINVAL,
			"it has no list of events (traceEvents, profiles of speedscope, or "
			"entries of a flight recorder)");
	if (!complete)
		say_damage(&reader, damage);
	return 0;
}
