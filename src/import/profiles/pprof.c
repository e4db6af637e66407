/* Reading the file; pprof_rows.c makes rows of it. */
#include "import/profiles/pprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/input/protobuf_stream.h"
#include "import/profiles/pprof_state.h"

#define LABELS_MOST 8u /* of a sample */
#define VALUES_MOST PPROF_TYPES_MOST
#define LINES_MOST 256u /* of a location: functions that are inlined into each other */

enum { /* Profile */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE = 2,
       PROFILE_MAPPING = 3,
       PROFILE_LOCATION = 4,
       PROFILE_FUNCTION = 5,
       PROFILE_STRING = 6,
       PROFILE_TIME = 9,
       PROFILE_DURATION = 10,
       PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD = 12,
       PROFILE_DEFAULT_TYPE = 14,
       PROFILE_LAST = 16,
};
enum { /* its parts */
       TYPE_TYPE = 1,
       TYPE_UNIT = 2,
       SAMPLE_LOCATION = 1,
       SAMPLE_VALUE = 2,
       SAMPLE_LABEL = 3,
       LABEL_KEY = 1,
       LABEL_TEXT = 2,
       LABEL_NUMBER = 3,
       MAPPING_ID = 1,
       MAPPING_FILE = 5,
       LOCATION_ID = 1,
       LOCATION_MAPPING = 2,
       LOCATION_ADDRESS = 3,
       LOCATION_LINE = 4,
       LINE_FUNCTION = 1,
       LINE_NUMBER = 2,
       FUNCTION_ID = 1,
       FUNCTION_NAME = 2,
       FUNCTION_FILE = 4,
};

/* Keeps an entry in its list. */
#define PPROF_KEEP(own, list_of, entry) \
	do { \
		void *kept_ = TRACE_ADD(&(own)->list_of); \
		if (kept_) \
			memcpy(kept_, (entry), sizeof(*(own)->list_of.list)); \
		else \
			(own)->no_memory = true; \
	} while (0)

/* ---- ids ----------------------------------------------------------------------------------- */

static bool same_pprof_id(const void *owner, uint32_t number, const void *key)
{
	return ((const struct pprof_ids *)owner)->list.list[number].id == *(const uint64_t *)key;
}

/* The number of an id; TRACE_NONE: no memory, or the id 0, which is none. */
static uint32_t number_of_id(struct pprof *own, struct pprof_ids *ids, uint64_t id)
{
	const uint64_t hash = intern_hash_number(own->trace->seed, id);
	uint32_t number = id ? intern_find(&ids->index, hash, same_pprof_id, ids, &id) : TRACE_NONE;
	struct pprof_id *kept;

	if (number != INTERN_NONE || !id)
		return number;
	kept = TRACE_ADD(&ids->list);
	if (kept)
		kept->id = id;
	number = kept ? intern_add(&ids->index, hash) : INTERN_NONE;
	if (number == INTERN_NONE) {
		ids->list.count -= kept != NULL;
		own->no_memory = true;
	}
	return number;
}

/* Makes the list as long as entry `number` needs. */
#define PPROF_REACH(own, list_of, number) \
	while ((number) != TRACE_NONE && (own)->list_of.count <= (number) && !(own)->no_memory) \
	(own)->no_memory = !TRACE_ADD(&(own)->list_of)

/* ---- parts of a profile -------------------------------------------------------------------- */

static struct pprof_type read_type(const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct pprof_type type = { 0 };
	struct protobuf_field part;

	while (protobuf_read_next(&reader, &part))
		if (part.number == TYPE_TYPE)
			type.type = part.value;
		else if (part.number == TYPE_UNIT)
			type.unit = part.value;
	return type;
}

static void read_sample_type(struct pprof *own, const struct protobuf_field *field)
{
	const struct pprof_type type = read_type(field);

	if (own->types.count < PPROF_TYPES_MOST)
		PPROF_KEEP(own, types, &type);
}

static void read_label(struct pprof *own, struct pprof_sample *sample,
		       const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct pprof_label label = { 0 };
	struct protobuf_field part;

	while (protobuf_read_next(&reader, &part))
		if (part.number == LABEL_KEY)
			label.key = part.value;
		else if (part.number == LABEL_TEXT)
			label.text = part.value;
		else if (part.number == LABEL_NUMBER)
			label.number = (int64_t)part.value;
	if (sample->label_count >= LABELS_MOST)
		return;
	PPROF_KEEP(own, labels, &label);
	sample->label_count++;
}

/* The locations of a stack, innermost first; those beyond the ring are the innermost. */
struct location_ring {
	uint32_t list[PROFILE_DEPTH_MOST];
	size_t count;
};

static void read_locations(struct pprof *own, struct location_ring *ring,
			   const struct protobuf_field *field)
{
	struct protobuf_reader inner = { 0 };
	uint64_t id;

	while (protobuf_read_number(field, &inner, &id))
		ring->list[ring->count++ % PROFILE_DEPTH_MOST] = number_of_id(
			own, &own->location_ids, id);
}

static void read_values(struct pprof *own, struct pprof_sample *sample,
			const struct protobuf_field *field)
{
	struct protobuf_reader inner = { 0 };
	struct pprof_value value;
	uint64_t number;

	while (protobuf_read_number(field, &inner, &number)) {
		if (sample->value_count >= VALUES_MOST)
			return;
		value.number = (int64_t)number;
		PPROF_KEEP(own, values, &value);
		sample->value_count++;
	}
}

static void find_node(struct pprof *own, const struct location_ring *ring,
		      struct pprof_sample *sample)
{
	const size_t most = ring->count < PROFILE_DEPTH_MOST ? ring->count : PROFILE_DEPTH_MOST;

	for (size_t i = 1; i <= most && !sample->is_cut; i++) {
		sample->node = profile_stacks_node(
			&own->stacks, sample->node,
			ring->list[(ring->count - i) % PROFILE_DEPTH_MOST]);
		sample->is_cut = !sample->node;
	}
}

static void read_sample(struct pprof *own, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct pprof_sample sample = { .value = own->values.count, .label = own->labels.count };
	struct location_ring ring;
	struct protobuf_field part;

	ring.count = 0;
	while (protobuf_read_next(&reader, &part))
		if (part.number == SAMPLE_LOCATION)
			read_locations(own, &ring, &part);
		else if (part.number == SAMPLE_VALUE)
			read_values(own, &sample, &part);
		else if (part.number == SAMPLE_LABEL)
			read_label(own, &sample, &part);
	if (own->no_memory)
		return;
	find_node(own, &ring, &sample);
	PPROF_KEEP(own, samples, &sample);
}

static void read_mapping(struct pprof *own, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field part;
	uint64_t id = 0, file = 0;
	uint32_t number;

	while (protobuf_read_next(&reader, &part))
		if (part.number == MAPPING_ID)
			id = part.value;
		else if (part.number == MAPPING_FILE)
			file = part.value;
	number = number_of_id(own, &own->mapping_ids, id);
	PPROF_REACH(own, mappings, number);
	if (number < own->mappings.count)
		own->mappings.list[number].file = file;
}

static void read_function(struct pprof *own, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct pprof_function function = { 0 };
	struct protobuf_field part;
	uint64_t id = 0;
	uint32_t number;

	while (protobuf_read_next(&reader, &part))
		if (part.number == FUNCTION_ID)
			id = part.value;
		else if (part.number == FUNCTION_NAME)
			function.name = part.value;
		else if (part.number == FUNCTION_FILE)
			function.file = part.value;
	number = number_of_id(own, &own->function_ids, id);
	PPROF_REACH(own, functions, number);
	if (number < own->functions.count)
		own->functions.list[number] = function;
}

static void pprof_line_read(struct pprof *own, struct pprof_location *location,
			    const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct pprof_line line = { .function = TRACE_NONE };
	struct protobuf_field part;

	while (protobuf_read_next(&reader, &part))
		if (part.number == LINE_FUNCTION)
			line.function = number_of_id(own, &own->function_ids, part.value);
		else if (part.number == LINE_NUMBER)
			line.line = (int64_t)part.value;
	if (location->line_count >= LINES_MOST || own->lines.count >= TRACE_NONE)
		return;
	PPROF_KEEP(own, lines, &line);
	location->line_count += !own->no_memory;
}

static void read_location(struct pprof *own, const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct pprof_location location = { .mapping = TRACE_NONE,
					   .line = (uint32_t)own->lines.count,
					   .is_known = true };
	struct protobuf_field part;
	uint64_t id = 0;
	uint32_t number;

	while (protobuf_read_next(&reader, &part))
		switch (part.number) {
		case LOCATION_ID: id = part.value; break;
		case LOCATION_MAPPING:
			location.mapping = number_of_id(own, &own->mapping_ids, part.value);
			break;
		case LOCATION_ADDRESS: location.address = part.value; break;
		case LOCATION_LINE: pprof_line_read(own, &location, &part); break;
		default: break;
		}
	number = number_of_id(own, &own->location_ids, id);
	PPROF_REACH(own, locations, number);
	if (number < own->locations.count)
		own->locations.list[number] = location;
}

static void read_string(struct pprof *own, const struct protobuf_field *field)
{
	struct json_text text = { 0 };

	if (field->wire == 2 && field->value < UINT32_MAX) {
		text.at = trace_keep(own->trace, (const char *)field->at, field->value);
		text.bytes = text.at ? (uint32_t)field->value : 0;
	}
	PPROF_KEEP(own, strings, &text);
}

static void read_field(struct pprof *own, const struct protobuf_field *field)
{
	switch (field->number) {
	case PROFILE_SAMPLE_TYPE: read_sample_type(own, field); break;
	case PROFILE_SAMPLE: read_sample(own, field); break;
	case PROFILE_MAPPING: read_mapping(own, field); break;
	case PROFILE_LOCATION: read_location(own, field); break;
	case PROFILE_FUNCTION: read_function(own, field); break;
	case PROFILE_STRING: read_string(own, field); break;
	case PROFILE_TIME: own->time_ns = (int64_t)field->value; break;
	case PROFILE_DURATION: own->duration_ns = (int64_t)field->value; break;
	case PROFILE_PERIOD_TYPE: own->period_type = read_type(field); break;
	case PROFILE_PERIOD: own->period = (int64_t)field->value; break;
	case PROFILE_DEFAULT_TYPE: own->default_type = field->value; break;
	default: break;
	}
}

/* ---- texts --------------------------------------------------------------------------------- */

struct json_text pprof_string(const struct pprof *own, uint64_t number)
{
	return number < own->strings.count ? own->strings.list[number]
					   : (struct json_text){ .at = "" };
}

bool pprof_is_word(const struct pprof *own, uint64_t number, const char *word)
{
	const struct json_text text = pprof_string(own, number);

	return json_text_is(&text, word, strlen(word));
}

/* "libx.so+0x12", as of a function whose name kymo itself does not find. */
static void name_address(struct pprof *own, const struct pprof_location *location,
			 struct profile_frame *out)
{
	const char *slash;
	char text[256], number[32];
	size_t used, more;

	used = json_text_plain(&out->module, text, 200);
	slash = strrchr(text, '/');
	used -= slash ? (size_t)(slash + 1 - text) : 0;
	memmove(text, slash ? slash + 1 : text, used + 1);
	more = (size_t)snprintf(number, sizeof(number), "%s0x%llx", used ? "+" : "",
				(unsigned long long)location->address);
	memcpy(text + used, number, more);
	out->name.at = trace_keep(own->trace, text, used + more);
	out->name.bytes = out->name.at ? (uint32_t)(used + more) : 0;
	out->file = out->module;
}

bool pprof_frame(struct pprof *own, uint32_t number, uint32_t line, struct profile_frame *out)
{
	const struct pprof_location *location = number < own->locations.count
							? &own->locations.list[number]
							: NULL;
	const struct pprof_line *at;

	*out = (struct profile_frame){ 0 };
	if (!location || !location->is_known)
		return false;
	if (location->mapping < own->mappings.count)
		out->module = pprof_string(own, own->mappings.list[location->mapping].file);
	if (!location->line_count) {
		name_address(own, location, out);
		return true;
	}
	at = &own->lines.list[location->line + line];
	if (at->function >= own->functions.count)
		return false;
	out->name = pprof_string(own, own->functions.list[at->function].name);
	out->file = pprof_string(own, own->functions.list[at->function].file);
	out->line = at->line;
	return true;
}

/* ---- the file ------------------------------------------------------------------------------ */

static bool is_value_type(const struct protobuf_field *field)
{
	struct protobuf_reader reader = protobuf_read_message(field);
	struct protobuf_field part;
	size_t parts = 0;

	while (protobuf_read_next(&reader, &part)) {
		if (part.number > TYPE_UNIT || part.wire)
			return false;
		parts++;
	}
	return !reader.bad && parts;
}

static bool is_profile_field(const struct protobuf_field *field)
{
	switch (field->number) {
	case PROFILE_SAMPLE_TYPE:
	case PROFILE_PERIOD_TYPE: return field->wire == 2 && is_value_type(field);
	case PROFILE_SAMPLE:
	case PROFILE_MAPPING:
	case PROFILE_LOCATION:
	case PROFILE_FUNCTION:
	case PROFILE_STRING: return field->wire == 2;
	case 13: return field->wire == 0 || field->wire == 2; /* comments */
	default: return field->number < PROFILE_LAST && field->wire == 0;
	}
}

bool pprof_is(const char *bytes, size_t count)
{
	struct protobuf_reader reader = { (const unsigned char *)bytes,
					  (const unsigned char *)bytes + count, false };
	struct protobuf_field field;
	bool begins = false;

	while (protobuf_read_next(&reader, &field)) {
		if (!is_profile_field(&field))
			return false;
		/* The first string is empty. */
		begins = begins || field.number == PROFILE_SAMPLE_TYPE ||
			 (field.number == PROFILE_STRING && !field.value);
	}
	return begins;
}

static void pprof_fini(struct pprof *own)
{
	struct pprof_ids *ids[] = { &own->function_ids, &own->location_ids, &own->mapping_ids };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		free(ids[i]->list.list);
		intern_fini(&ids[i]->index);
	}
	free(own->types.list);
	free(own->strings.list);
	free(own->functions.list);
	free(own->locations.list);
	free(own->lines.list);
	free(own->mappings.list);
	free(own->samples.list);
	free(own->labels.list);
	free(own->values.list);
	profile_stacks_fini(&own->stacks);
}

static void read_fields(struct pprof *own, struct input *input, struct json_scan *scan, bool *bad)
{
	const struct import_options *options = own->trace->options;
	struct protobuf_field field;
	uint64_t fields = 0;

	while (!own->no_memory && protobuf_stream_next(input, scan, &field, bad)) {
		read_field(own, &field);
		if (options->progress && fields++ % 4096 == 0)
			options->progress(options->context, input->read_bytes, input->file_bytes);
	}
}

int pprof_read(struct trace *trace, struct input *input, struct kymo_error *damage,
	       struct kymo_error *err)
{
	struct pprof own = { .trace = trace };
	struct json_scan scan = { 0 };
	bool bad = false;
	int rc;

	read_fields(&own, input, &scan, &bad);
	if (own.no_memory)
		rc = error_set(err, ENOMEM, "no memory for a profile");
	else if (!own.types.count)
		rc = error_set(err, EINVAL, "it has no types of values, as a profile of pprof has");
	else
		rc = pprof_end(&own, err);
	pprof_fini(&own);
	if (!rc && (bad || input->damage.code))
		error_set(damage, EPROTO, "%s at byte %llu; %llu samples before it are kept",
			  input->damage.code ? input->damage.text : "it is truncated or damaged",
			  (unsigned long long)input_offset(input, &scan),
			  (unsigned long long)trace->events);
	return rc;
}
