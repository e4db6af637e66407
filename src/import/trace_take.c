/* From events to the lists of a trace. */
#include <kymo/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/grow.h"
#include "import/trace.h"

/* ---- beginning and end --------------------------------------------------------------------- */

void trace_begin(struct trace *trace, const struct import_options *options, const char *path)
{
	memset(trace, 0, sizeof(*trace));
	trace->options = options;
	trace->path = path;
	trace->rank = trace->ranks = -1;
	trace->last_track = TRACE_NONE;
	if (getrandom(&trace->seed, sizeof(trace->seed), GRND_NONBLOCK) < 0)
		trace->seed = (uintptr_t)trace;
	if (!TRACE_ADD(&trace->names)) /* entry 0 is not used */
		trace->names_full++;
}

void trace_end(struct trace *trace)
{
	free(trace->categories.list);
	free(trace->names.list);
	free(trace->processes.list);
	free(trace->tracks.list);
	free(trace->zones.list);
	free(trace->ops.list);
	free(trace->queues.list);
	free(trace->marks.list);
	free(trace->counters.list);
	free(trace->memory.list);
	free(trace->steps.list);
	free(trace->collectives.list);
	free(trace->open.list);
	free(trace->open_heads.list);
	free(trace->syncs.list);
	free(trace->own_ops.list);
	free(trace->flights.list);
	free(trace->groups.list);
	free(trace->frames.list);
	free(trace->samples.list);
	for (size_t i = 0; i < sizeof(trace->indexes) / sizeof(trace->indexes[0]); i++)
		intern_fini(&trace->indexes[i]);
	for (char *block = trace->texts; block;) {
		char *before;

		memcpy(&before, block, sizeof(char *));
		free(block);
		block = before;
	}
	memset(trace, 0, sizeof(*trace));
}

/* ---- zones --------------------------------------------------------------------------------- */

static uint32_t short_number(int64_t value)
{
	return value > 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static uint32_t comm_text(struct trace *trace, const struct json_text *text)
{
	return text->at && text->bytes
		       ? trace_name(trace, TRACE_CLASS_COUNT, KYMO_SOURCE_DEVICE, text)
		       : 0;
}

/* "[0, 1, 2]" as "0,1,2". */
static uint32_t comm_members(struct trace *trace, const struct json_text *text)
{
	char members[1024];
	size_t used = 0;

	for (uint32_t i = 0; i < text->bytes && used + 1 < sizeof(members); i++)
		if ((text->at[i] >= '0' && text->at[i] <= '9') || text->at[i] == ',')
			members[used++] = text->at[i];
	members[used] = '\0';
	/* PyTorch shortens long lists with dots: then they are not known. */
	if (!used || memchr(text->at, '.', text->bytes) || used + 1 == sizeof(members))
		return 0;
	return trace_name_text(trace, KYMO_SOURCE_DEVICE, members);
}

static struct trace_collective *add_collective(struct trace *trace, const struct trace_event *event)
{
	struct trace_collective *comm = TRACE_ADD(&trace->collectives);

	if (!comm)
		return NULL;
	comm->op = comm_text(trace, &event->comm.name);
	comm->group = comm_text(trace, &event->comm.group);
	comm->dtype = comm_text(trace, &event->comm.dtype);
	comm->members = event->comm.ranks.at ? comm_members(trace, &event->comm.ranks) : 0;
	comm->in_elements = event->comm.in_elements;
	comm->out_elements = event->comm.out_elements;
	comm->group_size = event->comm.group_size;
	comm->sequence = event->comm.sequence;
	comm->zone = TRACE_NONE;
	return comm;
}

static void link_operator(struct trace *trace, const struct trace_event *event,
			  struct trace_zone *zone, uint32_t name_flags)
{
	zone->flags |= TRACE_ZONE_OPERATOR;
	if ((name_flags & TRACE_NAME_PARAMS) && add_collective(trace, event)) {
		zone->link = (uint32_t)(trace->collectives.count - 1);
		zone->flags |= TRACE_ZONE_COMM;
		trace->collectives.list[zone->link].zone = (uint32_t)(trace->zones.count - 1);
		return;
	}
	if (!(event->has & TRACE_EVENT_SEQUENCE) || event->sequence < 0)
		return;
	zone->link = short_number(event->sequence + 1);
	zone->flags |= event->forward_thread ? TRACE_ZONE_BACKWARD : TRACE_ZONE_FORWARD;
	trace->any_backward = trace->any_backward || event->forward_thread;
}

static void link_zone(struct trace *trace, const struct trace_event *event, enum trace_class class,
		      struct trace_zone *zone)
{
	const uint32_t name_flags = trace->names.list[zone->name].flags;

	zone->external = short_number(event->external);
	if (class == TRACE_CLASS_OPERATOR) {
		link_operator(trace, event, zone, name_flags);
	} else if (class == TRACE_CLASS_RUNTIME) {
		zone->link = short_number(event->correlation);
		zone->flags |= (zone->link ? TRACE_ZONE_LAUNCH : 0) |
			       (name_flags & TRACE_NAME_SYNC ? TRACE_ZONE_SYNC : 0);
	} else if (name_flags & TRACE_NAME_MODULE) {
		zone->flags |= TRACE_ZONE_MODULE;
		trace->any_module = true;
	} else if ((name_flags & TRACE_NAME_HOST_COMM) && add_collective(trace, event)) {
		zone->link = (uint32_t)(trace->collectives.count - 1);
		zone->flags |= TRACE_ZONE_COMM;
		trace->collectives.list[zone->link].zone = (uint32_t)(trace->zones.count - 1);
	}
}

static void trace_add_step(struct trace *trace, const struct trace_zone *zone)
{
	const struct writer_name *name = &trace->names.list[zone->name].name;
	struct trace_step *step = TRACE_ADD(&trace->steps);

	if (!step)
		return;
	step->start_ns = zone->start_ns;
	step->dur_ns = zone->dur_ns;
	step->track = zone->track;
	step->name = trace_name_text(trace, KYMO_SOURCE_MARK, "ProfilerStep");
	step->number = (uint32_t)strtoul(name->text + strlen("ProfilerStep#"), NULL, 10);
}

/* What an event, or the two of a begin and an end, tell about a zone. */
struct zone_facts {
	int64_t start_ns, dur_ns;
	uint32_t name, track, category;
	uint32_t step; /* + 1; 0: not in the trace */
	uint32_t cut_ns; /* in an export of kymo; else 0 */
	char phase;
};

static uint32_t zone_step(const struct trace_event *event)
{
	return event->step >= 0 && event->step < UINT32_MAX ? (uint32_t)event->step + 1 : 0;
}

static enum trace_outcome add_zone(struct trace *trace, const struct trace_event *event,
				   const struct zone_facts *facts)
{
	struct trace_zone *zone;

	if (facts->dur_ns < 0)
		return TRACE_BAD_TIME;
	zone = facts->track == TRACE_NONE || trace->zones.count >= UINT32_MAX - 1
		       ? NULL
		       : TRACE_ADD(&trace->zones);
	if (!zone)
		return TRACE_NO_MEMORY;
	zone->start_ns = facts->start_ns;
	zone->dur_ns = (uint64_t)facts->dur_ns;
	zone->name = facts->name;
	zone->track = facts->track;
	zone->step = facts->step;
	zone->flags = facts->category << TRACE_ZONE_CATEGORY_SHIFT |
		      (facts->phase == 'X'   ? 0
		       : facts->phase == 'B' ? TRACE_ZONE_BEGUN
					     : TRACE_ZONE_ASYNC);
	trace->tracks.list[facts->track].zones++;
	trace->processes.list[trace->tracks.list[facts->track].process].zones++;
	link_zone(trace, event, trace->categories.list[facts->category].class, zone);
	if (facts->cut_ns) {
		zone->external = facts->cut_ns;
		zone->flags |= TRACE_ZONE_CUT;
	}
	if (trace->names.list[facts->name].flags & TRACE_NAME_STEP)
		trace_add_step(trace, &trace->zones.list[trace->zones.count - 1]);
	return TRACE_ZONE;
}

/* ---- device operations --------------------------------------------------------------------- */

static bool name_has(const struct trace *trace, uint32_t name, const char *word)
{
	return name && strstr(trace->names.list[name].name.text, word);
}

static uint16_t trace_take_kind_of(const struct trace *trace, enum trace_class class, uint32_t name)
{
	switch (class) {
	case TRACE_CLASS_KERNEL: return KYMO_DEVICE_KERNEL;
	case TRACE_CLASS_MEMSET: return KYMO_DEVICE_FILL;
	case TRACE_CLASS_MEMCPY:
		if (name_has(trace, name, "HtoD") || name_has(trace, name, "HostToDevice"))
			return KYMO_DEVICE_WRITE;
		return name_has(trace, name, "DtoH") || name_has(trace, name, "DeviceToHost")
			       ? KYMO_DEVICE_READ
			       : KYMO_DEVICE_COPY;
	case TRACE_CLASS_SYNC:
		/* The device waits, not the host. */
		return name_has(trace, name, "Stream Wait Event") ? KYMO_DEVICE_BARRIER
								  : KYMO_DEVICE_WAIT;
	default: return KYMO_DEVICE_MODULE;
	}
}

static void fill_comm(struct trace *trace, const struct trace_event *event, struct trace_op *op)
{
	const bool has_arguments = event->comm.name.at != NULL;

	if (op->kind != KYMO_DEVICE_KERNEL ||
	    (!has_arguments && !(trace->names.list[op->name].flags & TRACE_NAME_COMM)))
		return;
	op->flags |= SCHEMA_DEVICE_COMM;
	if (has_arguments && add_collective(trace, event))
		op->comm = (uint32_t)trace->collectives.count;
}

static enum trace_outcome add_op(struct trace *trace, const struct trace_event *event,
				 enum trace_class class, uint32_t name)
{
	const uint16_t kind = trace_take_kind_of(trace, class, name);
	const uint32_t queue = trace_queue(trace, event);
	struct trace_op *op;

	if (event->dur_ns < 0)
		return TRACE_BAD_TIME;
	if (queue == TRACE_NONE)
		return TRACE_NO_MEMORY;
	if (kind == KYMO_DEVICE_WAIT && short_number(event->correlation)) {
		/* The call that waited has the row; trace_ops.c joins the two. */
		trace_sync_add(trace, short_number(event->correlation), queue);
		return TRACE_MERGED;
	}
	op = trace->ops.count >= UINT32_MAX - 1 ? NULL : TRACE_ADD(&trace->ops);
	if (!op)
		return TRACE_NO_MEMORY;
	op->start_ns = event->ts_ns;
	op->dur_ns = (uint64_t)event->dur_ns;
	op->bytes = event->bytes > 0 ? (uint64_t)event->bytes : 0;
	op->name = name;
	op->queue = queue;
	op->correlation = short_number(event->correlation);
	op->graph = event->graph > 0 && event->graph < INT32_MAX ? (int32_t)event->graph : 0;
	op->kind = kind;
	op->process = event->has & TRACE_EVENT_OWNER ? trace_owner(trace, event->owner)
						     : TRACE_NONE;
	fill_comm(trace, event, op);
	return TRACE_OP;
}

/* ---- complete, begin and end ---------------------------------------------------------------- */

/* Exports of kymo have the file and the line of a zone as arguments. */
static uint32_t trace_zone_name(struct trace *trace, const struct trace_event *event,
				uint32_t number)
{
	const struct trace_category *category = &trace->categories.list[number];

	if (category->class == TRACE_CLASS_OWN && event->file.at)
		return trace_name_place(trace, category->source, &event->name, &event->file,
					event->line);
	return trace_name(trace, category->class, category->source, &event->name);
}

static uint32_t own_cut(const struct trace_event *event, enum trace_class class)
{
	return class == TRACE_CLASS_OWN ? short_number(event->cut_ns) : 0;
}

static enum trace_outcome take_complete(struct trace *trace, const struct trace_event *event,
					uint32_t number)
{
	const enum trace_class class = trace->categories.list[number].class;
	struct zone_facts facts;

	if (class == TRACE_CLASS_PROFILER)
		return TRACE_PROFILER;
	if (class == TRACE_CLASS_OWN_OP || class == TRACE_CLASS_OWN_STEP)
		return trace_own_take(trace, event, class);
	if (class >= TRACE_CLASS_KERNEL && class <= TRACE_CLASS_SYNC)
		return add_op(trace, event, class,
			      trace_name(trace, class, trace->categories.list[number].source,
					 &event->name));
	facts = (struct zone_facts){ .start_ns = event->ts_ns,
				     .dur_ns = event->dur_ns,
				     .name = trace_zone_name(trace, event, number),
				     .track = trace_track(trace, event),
				     .category = number,
				     .step = class == TRACE_CLASS_OWN &&
							     (event->has & TRACE_EVENT_STEP)
						     ? zone_step(event)
						     : 0,
				     .cut_ns = own_cut(event, class),
				     .phase = 'X' };
	return add_zone(trace, event, &facts);
}

/* The identity of an async event: category, id and name. */
static uint64_t async_id(const struct trace *trace, const struct trace_event *event,
			 uint32_t category)
{
	uint64_t hash = intern_hash_number(trace->seed + category, (uint64_t)event->id.value);

	if (event->id.is_text)
		hash = intern_hash(hash, event->id.text.at, event->id.text.bytes);
	return intern_hash(hash, event->name.at, event->name.bytes) | 1;
}

static enum trace_outcome take_begin(struct trace *trace, const struct trace_event *event,
				     uint32_t number, uint64_t id)
{
	const uint32_t track = trace_track(trace, event);
	struct trace_open *open = track == TRACE_NONE ? NULL : trace_open_add(trace, track, id);

	if (!open)
		return TRACE_NO_MEMORY;
	open->ts_ns = event->ts_ns;
	open->name = trace_zone_name(trace, event, number);
	open->step = event->has & TRACE_EVENT_STEP ? zone_step(event) : 0;
	open->cut_ns = own_cut(event, trace->categories.list[number].class);
	open->category = number;
	return TRACE_ZONE;
}

static enum trace_outcome take_end(struct trace *trace, const struct trace_event *event,
				   uint64_t id)
{
	struct trace_open begun;
	struct zone_facts facts;

	if (!trace_open_take(trace, trace_track(trace, event), id, &begun))
		return TRACE_UNMATCHED;
	facts = (struct zone_facts){ .start_ns = begun.ts_ns,
				     .dur_ns = event->ts_ns - begun.ts_ns,
				     .name = begun.name,
				     .track = begun.track,
				     .category = begun.category,
				     .step = begun.step,
				     .cut_ns = begun.cut_ns,
				     .phase = begun.id ? 'b' : 'B' };
	if (add_zone(trace, event, &facts) == TRACE_ZONE)
		return TRACE_PAIRED;
	trace_recount(trace, begun.category, facts.phase, TRACE_ZONE, TRACE_BAD_TIME);
	return TRACE_BAD_TIME;
}

void trace_close_open(struct trace *trace)
{
	for (size_t i = 0; i < trace->open.count; i++) {
		const struct trace_open *open = &trace->open.list[i];

		if (open->track != TRACE_NONE)
			trace_recount(trace, open->category, open->id ? 'b' : 'B', TRACE_ZONE,
				      TRACE_UNENDED);
	}
	trace->open.count = 0;
}

/* ---- moments ------------------------------------------------------------------------------- */

static enum trace_outcome take_memory(struct trace *trace, const struct trace_event *event)
{
	const uint32_t track = trace_track(trace, event);
	struct trace_memory *memory = track == TRACE_NONE ? NULL : TRACE_ADD(&trace->memory);

	if (!memory)
		return TRACE_NO_MEMORY;
	memory->ts_ns = event->ts_ns;
	memory->bytes = event->bytes;
	memory->total_bytes = event->has & TRACE_EVENT_TOTAL ? event->total_bytes : -1;
	memory->track = track;
	memory->device_type = (int16_t)event->device_type;
	memory->device = (int16_t)event->device_id;
	return TRACE_MEMORY;
}

static enum trace_outcome take_instant(struct trace *trace, const struct trace_event *event,
				       uint32_t number)
{
	const uint32_t name = trace_name(trace, TRACE_CLASS_OTHER,
					 trace->categories.list[number].source, &event->name);
	const enum trace_class class = trace->categories.list[number].class;
	struct trace_point *mark;
	uint32_t track;

	if (class == TRACE_CLASS_OWN_OP) /* its times are not known */
		return trace_own_take(trace, event, class);
	if ((trace->names.list[name].flags & TRACE_NAME_MEMORY) &&
	    (event->has & TRACE_EVENT_MEMORY))
		return take_memory(trace, event);
	track = trace_track(trace, event);
	mark = track == TRACE_NONE ? NULL : TRACE_ADD(&trace->marks);
	if (!mark)
		return TRACE_NO_MEMORY;
	mark->ts_ns = event->ts_ns;
	mark->name = name;
	mark->track = track;
	mark->step = event->has & TRACE_EVENT_STEP ? zone_step(event) : 0;
	return TRACE_MARK;
}

/* "name", or "name key" if the event has several values. */
static uint32_t counter_name(struct trace *trace, const struct trace_event *event,
			     const struct json_text *key, bool alone)
{
	char text[2 * KYMO_NAME_BYTES_MAX + 2];
	size_t used = json_text_plain(&event->name, text, KYMO_NAME_BYTES_MAX);

	if (!alone) {
		text[used++] = ' ';
		json_text_plain(key, text + used, KYMO_NAME_BYTES_MAX);
	}
	return trace_name_text(trace, KYMO_SOURCE_MARK, text);
}

/* Behind the first brace of the arguments, which the event's reader has skipped. */
static struct json_scan scan_arguments(const struct trace_event *event)
{
	const char *at = event->args.bytes ? event->args.at + 1 : "";

	return (struct json_scan){ at, at + event->args.bytes, JSON_OK };
}

static void add_counter(struct trace *trace, const struct trace_event *event, uint32_t name,
			double value)
{
	struct trace_point *point = TRACE_ADD(&trace->counters);

	if (!point)
		return;
	point->ts_ns = event->ts_ns;
	point->value = value;
	point->name = name;
	point->track = trace_track(trace, event);
	point->step = event->has & TRACE_EVENT_STEP ? zone_step(event) : 0;
}

static size_t counter_values(struct trace *trace, const struct trace_event *event, bool alone,
			     bool add)
{
	struct json_scan scan = scan_arguments(event);
	struct json_text key;
	double value;
	size_t count = 0;

	while (event->args.bytes && json_scan_key(&scan, &key)) {
		bool is_number = false;

		if (!json_scan_double(&scan, &value, &is_number))
			break;
		count += is_number;
		if (add && is_number)
			add_counter(trace, event, counter_name(trace, event, &key, alone), value);
	}
	return count;
}

static enum trace_outcome take_counter(struct trace *trace, const struct trace_event *event)
{
	size_t count;

	if (trace_track(trace, event) == TRACE_NONE)
		return TRACE_NO_MEMORY;
	if (event->has & TRACE_EVENT_VALUE) {
		add_counter(trace, event,
			    trace_name(trace, TRACE_CLASS_OTHER, KYMO_SOURCE_MARK, &event->name),
			    event->value);
		return TRACE_COUNTER;
	}
	count = counter_values(trace, event, false, false);
	counter_values(trace, event, count == 1, true);
	return count ? TRACE_COUNTER : TRACE_NOT_EVENT;
}

/* ---- names of processes and threads --------------------------------------------------------- */

static void argument_name(const struct trace_event *event, char *out, size_t out_bytes)
{
	struct json_scan scan = scan_arguments(event);
	struct json_text key, text;

	out[0] = '\0';
	while (event->args.bytes && json_scan_key(&scan, &key)) {
		if (JSON_TEXT_IS(&key, "name") && json_scan_next(&scan) == '"' &&
		    json_scan_text(&scan, &text))
			json_text_plain(&text, out, out_bytes);
		else if (!json_scan_skip(&scan))
			return;
	}
}

static enum trace_outcome take_metadata(struct trace *trace, const struct trace_event *event)
{
	char text[64];

	argument_name(event, text, sizeof(text));
	if (text[0] && JSON_TEXT_IS(&event->name, "thread_name"))
		trace_name_thread(trace, event, text);
	else if (text[0] && JSON_TEXT_IS(&event->name, "process_name"))
		trace_name_process(trace, event, text);
	return TRACE_METADATA;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static enum trace_outcome take_timed(struct trace *trace, const struct trace_event *event,
				     uint32_t category)
{
	if (!(event->has & TRACE_EVENT_TS))
		return TRACE_NO_TIME;
	if (event->has & TRACE_EVENT_BAD_TIME)
		return TRACE_BAD_TIME;
	switch (event->ph) {
	case 'X': return take_complete(trace, event, category);
	case 'B': return take_begin(trace, event, category, 0);
	case 'E': return take_end(trace, event, 0);
	case 'b': return take_begin(trace, event, category, async_id(trace, event, category));
	case 'e': return take_end(trace, event, async_id(trace, event, category));
	case 'i':
	case 'I':
	case 'R':
	case 'n': return take_instant(trace, event, category);
	case 'C': return take_counter(trace, event);
	default: return TRACE_UNKNOWN;
	}
}

void trace_take(struct trace *trace, const struct trace_event *event)
{
	const uint32_t category = trace_category(trace, &event->cat);
	enum trace_outcome outcome;

	trace->events++;
	if (category == TRACE_NONE)
		return;
	if (event->ph == 's' || event->ph == 't' || event->ph == 'f')
		outcome = TRACE_FLOW;
	else if (event->ph == 'M')
		outcome = take_metadata(trace, event);
	else
		outcome = take_timed(trace, event, category);
	trace->categories.list[category].outcomes[event->ph & 127][outcome]++;
}
