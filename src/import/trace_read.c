/* The frame of a trace: an array of events, or an object with traceEvents and facts about the run.
   Other members are skipped unread: traces carry environments, with passwords in them. */
#include <errno.h>
#include <stdio.h>

#include "import/flight/flight.h"
#include "import/import.h"
#include "import/input/input.h"
#include "import/trace.h"

#define PROGRESS_EVENTS 4096u

struct reader {
	struct trace *trace;
	struct input *input;
	struct json_scan scan;
	bool any_list; /* there was a list of events */
	bool in_flights; /* the list is that of a flight recorder */
};

/* Makes the value at scan->at whole in the window. False: it does not end. */
static bool read_more(struct reader *reader)
{
	return reader->scan.state == JSON_MORE && input_more(reader->input, &reader->scan);
}

/* The next byte that is not white space; 0: the file has ended. */
static char read_next(struct reader *reader)
{
	for (;;) {
		char c = json_scan_next(&reader->scan);

		if (c || reader->scan.state != JSON_MORE)
			return c;
		if (!input_more(reader->input, &reader->scan))
			return 0;
	}
}

static bool skip_value(struct reader *reader)
{
	struct json_skip skip = { 0 };

	while (!json_skip_more(&skip, &reader->scan)) {
		reader->scan.at = reader->scan.end;
		reader->scan.state = JSON_OK;
		if (!input_more(reader->input, &reader->scan))
			return false;
	}
	return true;
}

/* ---- events -------------------------------------------------------------------------------- */

static void read_progress(const struct reader *reader)
{
	const struct import_options *options = reader->trace->options;

	if (options->progress && reader->trace->events % PROGRESS_EVENTS == 0)
		options->progress(options->context, reader->input->read_bytes,
				  reader->input->file_bytes);
}

static bool skip_long_event(struct reader *reader, enum trace_outcome why)
{
	reader->scan.state = JSON_OK;
	trace_count(reader->trace, NULL, 0, why, 1);
	return skip_value(reader);
}

static bool read_flight_or_event(struct reader *reader)
{
	struct trace_event event;

	if (reader->in_flights)
		return flight_entry(reader->trace, &reader->scan);
	if (!trace_event_read(&reader->scan, &event))
		return false;
	trace_take(reader->trace, &event);
	return true;
}

/* At a {. False: the file is cut or is not JSON. */
static bool read_event(struct reader *reader)
{
	for (;;) {
		const char *from = reader->scan.at;

		if (read_flight_or_event(reader))
			break;
		reader->scan.at = from;
		if (reader->scan.state == JSON_BAD)
			return false;
		if (read_more(reader))
			continue;
		return !reader->input->ended && skip_long_event(reader, TRACE_TOO_LONG);
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
		char c = read_next(reader);

		switch (c) {
		case ',': reader->scan.at++; break;
		case ']': reader->scan.at++; return true;
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
	struct json_scan *scan = &reader->scan;
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

	if (json_scan_number(&reader->scan, 0, &number) && number.is_number &&
	    !number.out_of_range && number.value >= 0 && number.value < INT64_C(1) << 62)
		reader->trace->base_ns = number.value;
}

static void read_host(struct reader *reader)
{
	struct json_text text;

	if (*reader->scan.at != '"')
		json_scan_skip(&reader->scan);
	else if (json_scan_text(&reader->scan, &text))
		json_text_plain(&text, reader->trace->host, sizeof(reader->trace->host));
}

static void read_groups(struct reader *reader)
{
	flight_groups(reader->trace, &reader->scan);
}

/* Exports of kymo begin when the recording began, not at the first event. */
static void read_other(struct reader *reader)
{
	struct json_scan *scan = &reader->scan;
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
		const char *from = reader->scan.at;

		reader->scan.state = JSON_OK;
		read(reader);
		if (reader->scan.state == JSON_OK)
			return true;
		reader->scan.at = from;
		if (reader->scan.state == JSON_BAD || !read_more(reader))
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
		   flights = JSON_TEXT_IS(key, "entries");
	void (*read)(struct reader *) = NULL;
	char c;

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (json_text_is(key, facts[i].key, strlen(facts[i].key)))
			read = facts[i].read;
	c = read_next(reader); /* moves the window: key is not valid from here on */
	if ((events || flights) && c == '[') {
		reader->scan.at++;
		return read_events(reader, flights);
	}
	return read ? read_fact(reader, read) : skip_value(reader);
}

/* After the {. */
static bool read_object(struct reader *reader)
{
	struct json_text key;

	for (;;) {
		const char *from = reader->scan.at;

		if (json_scan_key(&reader->scan, &key)) {
			if (!read_member(reader, &key))
				return false;
			reader->scan.state = JSON_OK;
			continue;
		}
		if (reader->scan.state == JSON_OK)
			return true;
		reader->scan.at = from;
		if (reader->scan.state == JSON_BAD || !read_more(reader))
			return false;
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void say_damage(const struct reader *reader, struct kymo_error *damage)
{
	const unsigned long long at = input_offset(reader->input, &reader->scan);

	if (reader->input->damage.code)
		error_set(damage, EPROTO,
			  "%s, at byte %llu of the trace; %llu events before it are kept",
			  reader->input->damage.text, at,
			  (unsigned long long)reader->trace->events);
	else if (reader->input->ended && reader->scan.state != JSON_BAD)
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
	struct reader reader = { .trace = trace, .input = input };
	bool complete = false;
	char c;

	if (!input_more(input, &reader.scan) && input->damage.code)
		return error_set(err, EPROTO, "%s", input->damage.text);
	if (reader.scan.end - reader.scan.at >= 3 && !memcmp(reader.scan.at, "\xef\xbb\xbf", 3))
		reader.scan.at += 3;
	c = reader.scan.at ? read_next(&reader) : 0;
	if (c == '[' || c == '{') {
		reader.scan.at++;
		complete = c == '[' ? read_events(&reader, false) : read_object(&reader);
	}
	if (!c)
		return error_set(err, ENODATA, "it is empty");
	if (!reader.any_list)
		return error_set(err, EINVAL,
				 "it has no list of events (traceEvents, or entries of a flight "
				 "recorder)");
	if (!complete)
		say_damage(&reader, damage);
	return 0;
}
