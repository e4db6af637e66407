#include "import/perfetto/perfetto_state.h"

#include <stdlib.h>

#include "base/grow.h"

enum { ENTRY_IID = 1, ENTRY_TEXT = 2, LOCATION_LINE = 4 };
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_STATIC_NAME = 10,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
};

void perfetto_state_fini(struct perfetto_state *state)
{
	free(state->tracks.list);
	free(state->texts.list);
	free(state->sequences.list);
	intern_fini(&state->track_index);
	intern_fini(&state->text_index);
	intern_fini(&state->sequence_index);
}

struct json_text perfetto_keep(struct perfetto_state *state, const struct protobuf_field *field)
{
	const size_t bytes = field->value < KYMO_NAME_BYTES_MAX ? (size_t)field->value
								: KYMO_NAME_BYTES_MAX;
	struct json_text text = {
		.at = field->wire == 2 ? trace_keep(state->trace, (const char *)field->at, bytes)
				       : NULL
	};

	text.bytes = text.at ? (uint32_t)bytes : 0;
	return text;
}

/* ---- sequences ----------------------------------------------------------------------------- */

static bool same_sequence(const void *owner, uint32_t number, const void *key)
{
	return ((const struct perfetto_state *)owner)->sequences.list[number].id ==
	       *(const uint64_t *)key;
}

struct perfetto_sequence *perfetto_sequence(struct perfetto_state *state, uint64_t id)
{
	const uint64_t hash = intern_hash_number(state->trace->seed, id);
	uint32_t number = intern_find(&state->sequence_index, hash, same_sequence, state, &id);
	struct perfetto_sequence *sequence;

	if (number != INTERN_NONE)
		return &state->sequences.list[number];
	sequence = TRACE_ADD(&state->sequences);
	if (!sequence)
		return NULL;
	if (intern_add(&state->sequence_index, hash) == INTERN_NONE) {
		state->sequences.count--;
		return NULL;
	}
	sequence->id = id;
	return sequence;
}

/* ---- interned texts ------------------------------------------------------------------------ */

static bool perfetto_same_text(const void *owner, uint32_t number, const void *key)
{
	const struct perfetto_text *text =
		&((const struct perfetto_state *)owner)->texts.list[number];
	const struct perfetto_text *wanted = key;

	return text->iid == wanted->iid && text->sequence == wanted->sequence &&
	       text->kind == wanted->kind;
}

/* The number of a sequence in the list, with its generation. */
static uint64_t sequence_key(const struct perfetto_state *state,
			     const struct perfetto_sequence *sequence)
{
	return (uint64_t)(sequence - state->sequences.list) << 32 | (uint32_t)sequence->generation;
}

static uint64_t text_hash(const struct perfetto_state *state, const struct perfetto_text *key)
{
	return intern_hash_number(
		intern_hash_number(intern_hash_number(state->trace->seed, key->sequence),
				   key->kind),
		key->iid);
}

const struct perfetto_text *perfetto_text(struct perfetto_state *state,
					  const struct perfetto_sequence *sequence, uint32_t kind,
					  uint64_t iid)
{
	const struct perfetto_text key = { .sequence = sequence_key(state, sequence),
					   .kind = kind,
					   .iid = iid };
	const uint32_t number = intern_find(&state->text_index, text_hash(state, &key),
					    perfetto_same_text, state, &key);

	return number == INTERN_NONE ? NULL : &state->texts.list[number];
}

/* The first of an iid counts: an event may refer to it already. */
void perfetto_intern(struct perfetto_state *state, const struct perfetto_sequence *sequence,
		     uint32_t kind, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct perfetto_text text = { .sequence = sequence_key(state, sequence), .kind = kind };
	struct protobuf_field part, bytes = { 0 };
	struct perfetto_text *added;

	while (protobuf_read_next(&reader, &part))
		if (part.number == ENTRY_IID && !part.wire)
			text.iid = part.value;
		else if (part.number == ENTRY_TEXT)
			bytes = part;
		else if (part.number == LOCATION_LINE && !part.wire)
			text.line = (uint32_t)part.value;
	if (perfetto_text(state, sequence, kind, text.iid))
		return;
	text.text = perfetto_keep(state, &bytes);
	added = text.text.at ? TRACE_ADD(&state->texts) : NULL;
	if (added && intern_add(&state->text_index, text_hash(state, &text)) == INTERN_NONE)
		state->texts.count--;
	else if (added)
		*added = text;
}

/* ---- tracks -------------------------------------------------------------------------------- */

static bool same_uuid(const void *owner, uint32_t number, const void *key)
{
	return ((const struct perfetto_state *)owner)->tracks.list[number].uuid ==
	       *(const uint64_t *)key;
}

struct perfetto_track *perfetto_track(struct perfetto_state *state, uint64_t uuid, bool add)
{
	const uint64_t hash = intern_hash_number(state->trace->seed + 1, uuid);
	uint32_t number = intern_find(&state->track_index, hash, same_uuid, state, &uuid);
	struct perfetto_track *track;

	if (number != INTERN_NONE || !add)
		return number == INTERN_NONE ? NULL : &state->tracks.list[number];
	track = TRACE_ADD(&state->tracks);
	if (!track)
		return NULL;
	if (intern_add(&state->track_index, hash) == INTERN_NONE) {
		state->tracks.count--;
		return NULL;
	}
	track->uuid = uuid;
	return track;
}

static void describe_process(struct perfetto_state *state, struct perfetto_track *track,
			     const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field part;

	while (protobuf_read_next(&reader, &part))
		if (part.number == PROCESS_PID && !part.wire) {
			track->pid = track->tid = (int32_t)part.value;
			track->has_process = true;
		} else if (part.number == PROCESS_NAME) {
			track->name = perfetto_keep(state, &part);
		}
}

static void describe_thread(struct perfetto_state *state, struct perfetto_track *track,
			    const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field part;

	while (protobuf_read_next(&reader, &part))
		if (part.number == THREAD_PID && !part.wire)
			track->pid = (int32_t)part.value;
		else if (part.number == THREAD_TID && !part.wire)
			track->tid = (int64_t)part.value;
		else if (part.number == THREAD_NAME)
			track->name = perfetto_keep(state, &part);
	track->has_process = track->has_thread = true;
}

/* Names go to the trace at once: a thread without events is one, too. */
static void describe_names(struct perfetto_state *state, const struct perfetto_track *track)
{
	struct trace_event event;
	char text[64];

	if (!track->has_process || !json_text_plain(&track->name, text, sizeof(text)))
		return;
	trace_event_clear(&event);
	event.pid = (struct json_number){ .value = track->pid, .is_number = true };
	event.tid = (struct json_number){ .value = track->tid, .is_number = true };
	if (track->has_thread)
		trace_name_thread(state->trace, &event, text);
	else
		trace_name_process(state->trace, &event, text);
}

void perfetto_describe(struct perfetto_state *state, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field part, process = { 0 }, thread = { 0 }, name = { 0 };
	struct perfetto_track *track;
	uint64_t uuid = 0, parent = 0;

	while (protobuf_read_next(&reader, &part))
		switch (part.number) {
		case TRACK_UUID: uuid = part.value; break;
		case TRACK_PARENT: parent = part.value; break;
		case TRACK_PROCESS: process = part; break;
		case TRACK_THREAD: thread = part; break;
		case TRACK_NAME:
		case TRACK_STATIC_NAME: name = part; break;
		default: break;
		}
	track = perfetto_track(state, uuid, true);
	if (!track)
		return;
	track->parent = parent;
	if (name.number)
		track->name = perfetto_keep(state, &name);
	if (process.number)
		describe_process(state, track, &process);
	if (thread.number)
		describe_thread(state, track, &thread);
	describe_names(state, track);
}
