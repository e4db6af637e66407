/* From the stacks of a pprof profile to samples. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/profiles/pprof_state.h"

#define TIME_MOST (INT64_C(1) << 62)

static const struct json_text pprof_category = { .at = "pprof", .bytes = 5 };

/* ---- which values -------------------------------------------------------------------------- */

/* ns of a unit; 0: it is no time. */
static int64_t unit_ns(const struct pprof *own, uint64_t unit)
{
	static const struct {
		const char *word;
		int64_t ns;
	} units[] = { { "nanoseconds", 1 },
		      { "microseconds", 1000 },
		      { "milliseconds", 1000000 },
		      { "seconds", 1000000000 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (pprof_is_word(own, unit, units[i].word))
			return units[i].ns;
	return 0;
}

/* Which of the values are counts and times; -1: none. */
struct pprof_choice {
	int count, time;
	int64_t time_unit_ns; /* of `time`; of the period if there is none */
	bool has_bytes, has_zones;
};

static struct pprof_choice choose_values(const struct pprof *own)
{
	struct pprof_choice choice = { .count = -1, .time = -1 };

	for (int i = 0; i < (int)own->types.count; i++) {
		const struct pprof_type *type = &own->types.list[i];
		const int64_t ns = unit_ns(own, type->unit);
		const bool is_default = own->default_type && choice.time >= 0 &&
					own->types.list[choice.time].type == own->default_type;

		if (ns && !is_default) {
			choice.time = i;
			choice.time_unit_ns = ns;
		}
		if (choice.count < 0 && pprof_is_word(own, type->unit, "count"))
			choice.count = i;
		choice.has_bytes = choice.has_bytes || pprof_is_word(own, type->unit, "bytes");
	}
	if (choice.time < 0)
		choice.time_unit_ns = unit_ns(own, own->period_type.unit);
	return choice;
}

/* kymo export -f pprof: zones and their self time, then samples and what they stand for. */
static bool is_of_kymo(const struct pprof *own)
{
	static const char *const names[] = { "zones", "time", "samples", "sampled" };

	for (size_t i = 0; i < own->types.count && i < 4; i++)
		if (!pprof_is_word(own, own->types.list[i].type, names[i]))
			return false;
	return own->types.count == 3 || own->types.count == 4;
}

static int64_t pprof_number(const struct pprof *own, const struct pprof_sample *sample, int number)
{
	return number >= 0 && (uint32_t)number < sample->value_count
		       ? own->values.list[sample->value + (size_t)number].number
		       : 0;
}

/* The time of a stack; -1: out of range. */
static int64_t sample_ns(const struct pprof *own, const struct pprof_choice *choice,
			 const struct pprof_sample *sample)
{
	int64_t ns, value = pprof_number(own, sample, choice->time);

	if (choice->time < 0 &&
	    __builtin_mul_overflow(pprof_number(own, sample, choice->count), own->period, &value))
		return -1;
	if (__builtin_mul_overflow(value, choice->time_unit_ns, &ns) || ns >= TIME_MOST)
		return -1;
	return ns;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static uint32_t name_location(struct pprof *own, uint32_t parent, uint32_t location, bool of_kymo)
{
	struct profile_frame frame;
	uint32_t count = location < own->locations.count ? own->locations.list[location].line_count
							 : 0;

	count = count ? count : 1; /* an address */
	for (uint32_t i = count; i-- > 0;) {
		if (!pprof_frame(own, location, i, &frame))
			return 0;
		profile_frame_split(own->trace, &frame, of_kymo);
		if (profile_frame_is_python(&frame))
			own->trace->native_samples = false;
		parent = profile_frame_node(own->trace, parent, &frame);
		if (!parent)
			return 0;
	}
	return parent;
}

static uint32_t *name_stacks(struct pprof *own, bool of_kymo)
{
	const size_t count = own->stacks.nodes.count;
	uint32_t *nodes = calloc(count ? count : 1, sizeof(*nodes));

	own->trace->native_samples = true;
	for (size_t i = 1; nodes && i < count; i++) {
		const struct profile_node *node = &own->stacks.nodes.list[i];

		if (!node->parent || nodes[node->parent])
			nodes[i] = name_location(own, nodes[node->parent], node->frame, of_kymo);
	}
	return nodes;
}

/* ---- samples ------------------------------------------------------------------------------- */

struct pprof_sampling {
	struct pprof *own;
	struct pprof_choice choice;
	const uint32_t *nodes;
	__int128 all_ns; /* of all samples */
	__int128 done_ns;
};

static uint32_t sample_track(struct pprof *own, const struct pprof_sample *sample)
{
	struct trace_event event;
	struct json_text name = { 0 };
	char text[64];

	trace_event_clear(&event);
	event.cat = pprof_category;
	event.pid = event.tid = (struct json_number){ .value = 1, .is_number = true };
	for (uint32_t i = 0; i < sample->label_count; i++) {
		const struct pprof_label *label = &own->labels.list[sample->label + i];

		if (pprof_is_word(own, label->key, "thread id") ||
		    pprof_is_word(own, label->key, "thread_id"))
			event.tid.value = label->number;
		else if (pprof_is_word(own, label->key, "process_id"))
			event.pid.value = label->number;
		else if (pprof_is_word(own, label->key, "thread name") ||
			 pprof_is_word(own, label->key, "thread_name"))
			name = pprof_string(own, label->text);
	}
	if (json_text_plain(&name, text, sizeof(text)))
		trace_name_thread(own->trace, &event, text);
	return trace_track(own->trace, &event);
}

/* Profiles have no times of samples: these share the profile's duration by their weight. */
static int64_t sampling_now(const struct pprof_sampling *sampling)
{
	const int64_t duration = sampling->own->duration_ns;

	if (duration <= 0 || duration >= TIME_MOST)
		return sampling->done_ns < TIME_MOST ? (int64_t)sampling->done_ns : TIME_MOST;
	if (!sampling->all_ns)
		return 0;
	/* all_ns is below 2^62 times 2^23: shortened, the product fits. */
	return (int64_t)((double)duration * ((double)sampling->done_ns / (double)sampling->all_ns));
}

static void add_samples(struct pprof_sampling *sampling, const struct pprof_sample *from,
			int64_t weight, uint64_t count)
{
	const enum trace_outcome outcome = sampling->own->trace->native_samples
						   ? TRACE_NATIVE_SAMPLE
						   : TRACE_SAMPLE;
	struct trace_sample sample = { .node = sampling->nodes[from->node],
				       .track = sample_track(sampling->own, from) };
	const uint64_t each = (uint64_t)weight / count, more = (uint64_t)weight % count;

	for (uint64_t i = 0; i < count; i++) {
		sample.weight_ns = each + (i < more);
		sampling->done_ns += sample.weight_ns;
		sample.ts_ns = sampling_now(sampling);
		trace_count(sampling->own->trace, &pprof_category, 'P',
			    trace_sample(sampling->own->trace, &sample) ? outcome : TRACE_NO_MEMORY,
			    1);
	}
}

static void pprof_take_sample(struct pprof_sampling *sampling, const struct pprof_sample *sample)
{
	struct pprof *own = sampling->own;
	const int64_t number = pprof_number(own, sample, sampling->choice.count);
	const int64_t weight = sample_ns(own, &sampling->choice, sample);
	uint64_t count = number > 0 ? (uint64_t)number : 1;
	enum trace_outcome why = sample->is_cut					  ? TRACE_TOO_DEEP
				 : weight < 0 || number < 0			  ? TRACE_BAD_TIME
				 : !sampling->nodes[sample->node] && sample->node ? TRACE_NO_FRAME
										  : TRACE_SAMPLE;

	if (why != TRACE_SAMPLE) {
		trace_count(own->trace, &pprof_category, 'P', why, 1);
		return;
	}
	if (sampling->choice.has_zones && !number)
		return; /* a stack of zones alone */
	if (count > PROFILE_ROWS_MOST - own->rows)
		count = 1;
	own->rows += own->rows < PROFILE_ROWS_MOST ? count : 0;
	add_samples(sampling, sample, weight, count);
}

static void sum_weights(struct pprof_sampling *sampling)
{
	for (size_t i = 0; i < sampling->own->samples.count; i++) {
		int64_t ns = sample_ns(sampling->own, &sampling->choice,
				       &sampling->own->samples.list[i]);

		sampling->all_ns += ns > 0 ? ns : 0;
	}
}

/* ---- the profile --------------------------------------------------------------------------- */

static void set_pprof_times(struct pprof *own)
{
	struct trace *trace = own->trace;

	if (own->time_ns > 0 && own->time_ns < TIME_MOST / 2) {
		trace->base_ns = own->time_ns;
		trace->begins_at_base = true;
	}
	if (own->duration_ns > 0 && own->duration_ns < TIME_MOST / 2) {
		trace->ends_ns = own->duration_ns;
		trace->has_span = true;
	} else {
		own->duration_ns = 0;
	}
}

static int refuse_values(const struct pprof *own, struct kymo_error *err)
{
	const struct pprof_type *type = &own->types.list[0];
	const struct json_text name = pprof_string(own, type->type),
			       unit = pprof_string(own, type->unit);
	char name_text[64], unit_text[64];

	json_text_plain(&name, name_text, sizeof(name_text));
	json_text_plain(&unit, unit_text, sizeof(unit_text));
	return error_set(
		err, EINVAL, "its values are %s in %s: profiles of time or of counts are imported",
		name_text[0] ? name_text : "unnamed", unit_text[0] ? unit_text : "no unit");
}

int pprof_end(struct pprof *own, struct kymo_error *err)
{
	struct pprof_sampling sampling = { .own = own, .choice = choose_values(own) };
	const bool of_kymo = is_of_kymo(own);
	uint32_t *nodes;

	if (sampling.choice.time < 0 && (sampling.choice.count < 0 || sampling.choice.has_bytes))
		return refuse_values(own, err);
	if (of_kymo)
		sampling.choice = (struct pprof_choice){ .count = 2,
							 .time = own->types.count > 3 ? 3 : -1,
							 .time_unit_ns = own->types.count > 3,
							 .has_zones = true };
	nodes = name_stacks(own, of_kymo);
	if (!nodes)
		return error_set(err, ENOMEM, "no memory for a profile");
	set_pprof_times(own);
	sampling.nodes = nodes;
	sum_weights(&sampling);
	for (size_t i = 0; i < own->samples.count; i++)
		pprof_take_sample(&sampling, &own->samples.list[i]);
	free(nodes);
	if (of_kymo)
		pprof_zones(own);
	return 0;
}
