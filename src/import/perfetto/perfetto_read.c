#include <errno.h>
#include <stdlib.h>

#include "import/import.h"
#include "import/input/protobuf_stream.h"
#include "import/perfetto/perfetto.h"
#include "import/perfetto/perfetto_state.h"

#define PARENTS_MOST 16
#define PROGRESS_PACKETS 4096u
#define TIME_MOST (UINT64_C(1) << 62)

enum { /* Trace, TracePacket */
       TRACE_PACKET = 1,
       PACKET_CLOCKS = 6,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_EVENT = 11,
       PACKET_INTERNED = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_DEFAULTS = 59,
       PACKET_TRACK = 60,
};
enum { /* TrackEvent, its defaults */
       DEFAULTS_EVENT = 11,
       DEFAULTS_TRACK = 11,
       EVENT_CATEGORY_IIDS = 3,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME_IID = 10,
       EVENT_TRACK = 11,
       EVENT_CATEGORY = 22,
       EVENT_NAME = 23,
       EVENT_COUNTER = 30,
       EVENT_LOCATION_IID = 34,
       EVENT_DOUBLE = 44,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { /* DebugAnnotation, ClockSnapshot */
       ANNOTATION_NAME_IID = 1,
       ANNOTATION_BOOL = 2,
       ANNOTATION_UINT = 3,
       ANNOTATION_INT = 4,
       ANNOTATION_TEXT = 6,
       ANNOTATION_NAME = 10,
       SNAPSHOT_CLOCK = 1,
       CLOCK_ID = 1,
       CLOCK_TIMESTAMP = 2,
       CLOCK_REALTIME = 1,
       CLOCK_BOOTTIME = 6,
};

/* A packet, with the parts that are read. */
struct packet {
	uint64_t timestamp, sequence, flags;
	bool has_timestamp;
	struct protobuf_field event, interned, track, clocks, defaults; /* number 0: none */
};

/* An event before it becomes one of the trace. */
struct slice {
	struct trace_event event;
	struct trace_own_row own;
	uint64_t type, track;
	struct perfetto_sequence *sequence;
};

/* ---- packets ------------------------------------------------------------------------------- */

static bool read_packet(struct protobuf_reader *reader, struct packet *out)
{
	struct protobuf_field field;

	*out = (struct packet){ 0 };
	while (protobuf_read_next(reader, &field))
		switch (field.number) {
		case PACKET_TIMESTAMP:
			out->timestamp = field.value;
			out->has_timestamp = true;
			break;
		case PACKET_SEQUENCE: out->sequence = field.value; break;
		case PACKET_SEQUENCE_FLAGS: out->flags = field.value; break;
		case PACKET_EVENT: out->event = field; break;
		case PACKET_INTERNED: out->interned = field; break;
		case PACKET_TRACK: out->track = field; break;
		case PACKET_CLOCKS: out->clocks = field; break;
		case PACKET_DEFAULTS: out->defaults = field; break;
		default: break;
		}
	return !reader->bad;
}

/* The clock of packets is that of the boot; the snapshot tells the time of day. A recording of kymo
   begins at 0. */
static void perfetto_take_clocks(struct trace *trace, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field), inner;
	struct protobuf_field clock, part;
	uint64_t boot = UINT64_MAX, real = 0;

	while (protobuf_read_next(&reader, &clock)) {
		uint64_t id = 0, timestamp = 0;

		inner = protobuf_read_message(&clock);
		while (clock.number == SNAPSHOT_CLOCK && protobuf_read_next(&inner, &part))
			if (part.number == CLOCK_ID)
				id = part.value;
			else if (part.number == CLOCK_TIMESTAMP)
				timestamp = part.value;
		if (id == CLOCK_BOOTTIME)
			boot = timestamp;
		else if (id == CLOCK_REALTIME)
			real = timestamp;
	}
	if (trace->base_ns || boot > TIME_MOST || real > TIME_MOST || real < boot)
		return;
	trace->base_ns = (int64_t)(real - boot);
	trace->begins_at_base = !boot;
}

static void take_interned(struct perfetto_state *state, const struct perfetto_sequence *sequence,
			  const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field entry;

	while (protobuf_read_next(&reader, &entry))
		if (entry.number >= PERFETTO_CATEGORY && entry.number <= PERFETTO_LOCATION)
			perfetto_intern(state, sequence, entry.number, &entry);
}

static void take_defaults(struct perfetto_sequence *sequence, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field), inner;
	struct protobuf_field part, track;

	while (protobuf_read_next(&reader, &part)) {
		inner = protobuf_read_message(&part);
		while (part.number == DEFAULTS_EVENT && protobuf_read_next(&inner, &track))
			if (track.number == DEFAULTS_TRACK)
				sequence->default_track = track.value;
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static struct json_text field_text(const struct protobuf_field *field)
{
	if (field->wire != 2)
		return (struct json_text){ 0 };
	return (struct json_text){ .at = (const char *)field->at,
				   .bytes = field->value < UINT32_MAX ? (uint32_t)field->value
								      : 0 };
}

static struct json_text interned_text(struct perfetto_state *state, const struct slice *slice,
				      uint32_t kind, uint64_t iid)
{
	const struct perfetto_text *text = perfetto_text(state, slice->sequence, kind, iid);

	return text ? text->text : (struct json_text){ 0 };
}

static void take_annotation(struct perfetto_state *state, struct slice *slice,
			    const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field part, value = { 0 };
	struct json_text key = { 0 }, text;

	while (protobuf_read_next(&reader, &part))
		if (part.number == ANNOTATION_NAME)
			key = field_text(&part);
		else if (part.number == ANNOTATION_NAME_IID)
			key = interned_text(state, slice, PERFETTO_ANNOTATION, part.value);
		else if (part.number >= ANNOTATION_BOOL && part.number <= ANNOTATION_TEXT)
			value = part;
	if (!key.bytes)
		return;
	if (value.number == ANNOTATION_TEXT) {
		text = field_text(&value);
		if (text.at)
			trace_own_text(state->trace, &slice->own, &key, &text);
	} else if (value.number && value.number <= ANNOTATION_INT && !value.wire) {
		trace_own_number(&slice->own, &key, (int64_t)value.value);
		if (JSON_TEXT_IS(&key, "step")) {
			slice->event.step = (int64_t)value.value;
			slice->event.has |= TRACE_EVENT_STEP;
		} else if (JSON_TEXT_IS(&key, TRACE_OWN_CUT)) {
			slice->event.cut_ns = (int64_t)value.value;
		}
	}
}

static void take_location(struct perfetto_state *state, struct slice *slice, uint64_t iid)
{
	const struct perfetto_text *location = perfetto_text(state, slice->sequence,
							     PERFETTO_LOCATION, iid);

	if (!location)
		return;
	slice->event.file = location->text;
	slice->event.line = location->line;
}

static void perfetto_take_value(struct slice *slice, const struct protobuf_field *field)
{
	if (field->number == EVENT_DOUBLE && field->wire == 1)
		memcpy(&slice->event.value, &field->value, sizeof(double));
	else
		slice->event.value = (double)(int64_t)field->value;
	/* JSON has no NaN and no infinity, and so a trace has none. */
	if (slice->event.value - slice->event.value == 0)
		slice->event.has |= TRACE_EVENT_VALUE;
}

static void take_event_field(struct perfetto_state *state, struct slice *slice,
			     const struct protobuf_field *field)
{
	struct trace_event *event = &slice->event;

	switch (field->number) {
	case EVENT_TYPE: slice->type = field->value; break;
	case EVENT_TRACK: slice->track = field->value; break;
	case EVENT_NAME: event->name = field_text(field); break;
	case EVENT_NAME_IID:
		event->name = interned_text(state, slice, PERFETTO_NAME, field->value);
		break;
	case EVENT_CATEGORY: event->cat = field_text(field); break;
	case EVENT_CATEGORY_IIDS:
		if (!field->wire)
			event->cat = interned_text(state, slice, PERFETTO_CATEGORY, field->value);
		break;
	case EVENT_LOCATION_IID: take_location(state, slice, field->value); break;
	case EVENT_ANNOTATION: take_annotation(state, slice, field); break;
	case EVENT_COUNTER:
	case EVENT_DOUBLE: perfetto_take_value(slice, field); break;
	default: break;
	}
}

/* The pid and tid of a track: its own, or the pid of a parent and a number of its own. */
static void place_event(struct perfetto_state *state, struct slice *slice)
{
	struct perfetto_track *track = perfetto_track(state, slice->track, false);
	const struct perfetto_track *process = track;
	struct trace_event *event = &slice->event;

	for (int i = 0; process && !process->has_process && process->parent && i < PARENTS_MOST;
	     i++)
		process = perfetto_track(state, process->parent, false);
	event->pid.is_number = event->tid.is_number = true;
	event->pid.value = process ? process->pid : 0;
	event->tid.value = track && track->has_process ? track->tid
						       : (int64_t)(slice->track & INT32_MAX);
	/* A counter takes its name from the track; it is a value of the process. */
	if (slice->type == TYPE_COUNTER && track) {
		event->name = event->name.bytes ? event->name : track->name;
		event->tid.value = slice->own.tid ? slice->own.tid : process ? process->tid : 0;
	}
}

/* A track that is no thread has its own name. */
static void name_track(struct perfetto_state *state, const struct slice *slice)
{
	const struct perfetto_track *track = perfetto_track(state, slice->track, false);
	char text[64];

	if (track && !track->has_process && slice->type != TYPE_COUNTER &&
	    json_text_plain(&track->name, text, sizeof(text)))
		trace_name_thread(state->trace, &slice->event, text);
}

/* Rows of kymo. An end has no category: its track decides. */
static bool take_own(struct perfetto_state *state, struct slice *slice)
{
	const enum trace_class class = trace_class_of(state->trace, &slice->event.cat);
	struct perfetto_track *track = perfetto_track(state, slice->track, false);
	enum trace_outcome outcome = TRACE_PAIRED;

	if (slice->type == TYPE_END && track && track->has_own)
		goto count;
	if (class != TRACE_CLASS_OWN_OP && class != TRACE_CLASS_OWN_STEP)
		return false;
	if (track)
		track->has_own = true;
	slice->event.dur_ns = slice->own.duration_ns;
	outcome = trace_own_add(state->trace, &slice->event, class, &slice->own);
count:
	trace_count(state->trace, &slice->event.cat, slice->event.ph, outcome, 1);
	return true;
}

static void take_slice(struct perfetto_state *state, struct slice *slice,
		       const struct packet *packet)
{
	static const char phases[] = { '?', 'B', 'E', 'i', 'C' };
	struct trace_event *event = &slice->event;

	event->ph = slice->type < sizeof(phases) ? phases[slice->type] : '?';
	event->ts_ns = (int64_t)packet->timestamp;
	event->has |= packet->has_timestamp ? TRACE_EVENT_TS : 0;
	if (packet->timestamp > TIME_MOST)
		event->has |= TRACE_EVENT_BAD_TIME;
	place_event(state, slice);
	if (!(event->has & TRACE_EVENT_BAD_TIME) && take_own(state, slice))
		return;
	name_track(state, slice);
	trace_take(state->trace, event);
}

static void take_event(struct perfetto_state *state, struct perfetto_sequence *sequence,
		       const struct packet *packet)
{
	struct protobuf_reader reader = protobuf_read_message(&packet->event);
	struct slice slice = { .own.op.row.core = -1,
			       .sequence = sequence,
			       .track = sequence->default_track };
	struct protobuf_field field;

	trace_event_clear(&slice.event);
	while (protobuf_read_next(&reader, &field))
		take_event_field(state, &slice, &field);
	take_slice(state, &slice, packet);
}

static void take_packet(struct perfetto_state *state, const struct packet *packet)
{
	static const struct json_text other = { .at = "perfetto packet", .bytes = 15 };
	struct perfetto_sequence *sequence = perfetto_sequence(state, packet->sequence);

	if (!sequence)
		return;
	if (packet->flags & 1) /* the sequence forgets what it has interned */
		sequence->generation++;
	if (packet->interned.number)
		take_interned(state, sequence, &packet->interned);
	if (packet->defaults.number)
		take_defaults(sequence, &packet->defaults);
	if (packet->track.number)
		perfetto_describe(state, &packet->track);
	if (packet->clocks.number)
		perfetto_take_clocks(state->trace, &packet->clocks);
	if (packet->event.number)
		take_event(state, sequence, packet);
	else
		trace_count(state->trace, &other, 'M',
			    packet->track.number || packet->clocks.number || packet->interned.number
				    ? TRACE_METADATA
				    : TRACE_NOT_TRACK,
			    1);
}

/* ---- the file ------------------------------------------------------------------------------ */

bool perfetto_is(const char *bytes, size_t count)
{
	struct protobuf_reader reader = { (const unsigned char *)bytes,
					  (const unsigned char *)bytes + count, false };
	struct protobuf_field field, part;
	struct protobuf_reader inner;
	size_t parts = 0;

	if (!protobuf_read_next(&reader, &field) || field.number != TRACE_PACKET || field.wire != 2)
		return false;
	inner = protobuf_read_message(&field);
	while (protobuf_read_next(&inner, &part))
		parts++;
	return parts && !inner.bad && (reader.at == reader.end || *reader.at == 0x0a);
}

static void read_packets(struct perfetto_state *state, struct input *input, struct json_scan *scan,
			 bool *bad)
{
	const struct import_options *options = state->trace->options;
	struct protobuf_field field;
	struct packet packet;
	uint64_t packets = 0;

	while (!*bad && protobuf_stream_next(input, scan, &field, bad)) {
		struct protobuf_reader reader = protobuf_read_message(&field);

		if (field.number != TRACE_PACKET)
			continue;
		if (field.wire != 2 || !read_packet(&reader, &packet)) {
			*bad = true;
			break;
		}
		take_packet(state, &packet);
		if (options->progress && packets++ % PROGRESS_PACKETS == 0)
			options->progress(options->context, input->read_bytes, input->file_bytes);
	}
}

int perfetto_read(struct trace *trace, struct input *input, struct kymo_error *damage,
		  struct kymo_error *err)
{
	struct perfetto_state state = { .trace = trace };
	struct json_scan scan = { 0 };
	bool bad = false;

	read_packets(&state, input, &scan, &bad);
	perfetto_state_fini(&state);
	if (!trace->events)
		return error_set(err, EINVAL, "it has no packets of Perfetto");
	if (bad || input->damage.code)
		error_set(damage, EPROTO, "%s at byte %llu; %llu events before it are kept",
			  input->damage.code ? input->damage.text : "it is truncated or damaged",
			  (unsigned long long)input_offset(input, &scan),
			  (unsigned long long)trace->events);
	return 0;
}
