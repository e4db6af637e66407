/* Rows in exports of kymo that other formats have no word for: operations of devices and steps.
   They are events of the categories TRACE_OWN_OPS and TRACE_OWN_STEPS, with their columns as
   arguments. */
#include <kymo/device.h>
#include <stddef.h>

#include "base/grow.h"
#include "import/trace.h"

/* ---- columns ------------------------------------------------------------------------------- */

#define ROW(field) offsetof(struct schema_device_op_row, field)

static const struct {
	const char *key;
	size_t offset;
} own_texts[] = {
	{ "device", ROW(device) }, { "queue", ROW(queue) }, { "model", ROW(model) },
	{ "zone", ROW(zone) },	   { "call", ROW(call) },   { "module", ROW(module) },
};

static const struct {
	const char *key;
	size_t offset;
	size_t bytes;
	uint32_t flag; /* that tells that it is known */
} own_numbers[] = {
	{ "queued_ns", ROW(queued_ticks), 8, SCHEMA_DEVICE_QUEUED },
	{ "submit_ns", ROW(submit_ticks), 8, SCHEMA_DEVICE_SUBMIT },
	{ "start_ns", ROW(start_ticks), 8, SCHEMA_DEVICE_START },
	{ "end_ns", ROW(end_ticks), 8, SCHEMA_DEVICE_END },
	{ "zone_start_ns", ROW(zone_start_ticks), 8, 0 },
	{ "bytes", ROW(bytes), 8, 0 },
	{ "correlation", ROW(correlation), 8, 0 },
	{ "execution", ROW(execution), 8, 0 },
	{ "call_ns", ROW(call_ticks), 8, 0 },
	{ "core", ROW(core), 4, 0 },
	{ "status", ROW(status), 4, 0 },
	{ "error_ns", ROW(error_ns), 4, 0 },
	{ "step", ROW(step), 4, 0 },
};

static const char *const own_phases[KYMO_PHASE_COUNT] = { "data_ns", "forward_ns", "backward_ns",
							  "optimizer_ns" };

static const char *const own_kinds[] = {
#define X(upper, word) word,
	KYMO_DEVICE_KINDS(X)
#undef X
};

static bool is_key(const struct json_text *key, const char *word)
{
	return json_text_is(key, word, strlen(word));
}

void trace_own_text(struct trace *trace, struct trace_own_row *row, const struct json_text *key,
		    const struct json_text *text)
{
	for (size_t i = 0; i < sizeof(own_texts) / sizeof(own_texts[0]); i++)
		if (is_key(key, own_texts[i].key)) {
			uint32_t name = trace_name(trace, TRACE_CLASS_OTHER, KYMO_SOURCE_DEVICE,
						   text);

			memcpy((char *)&row->op.row + own_texts[i].offset, &name, sizeof(name));
		}
	for (size_t i = 0; is_key(key, "kind") && i < KYMO_DEVICE_KIND_COUNT; i++)
		if (is_key(text, own_kinds[i]))
			row->op.row.kind = (uint16_t)i;
}

static void own_flag(struct trace_own_row *row, const struct json_text *key, int64_t value)
{
	if (is_key(key, "depends") && value)
		row->op.row.flags |= KYMO_DEVICE_DEPENDS;
	else if (is_key(key, "blocking") && value)
		row->op.row.flags |= KYMO_DEVICE_BLOCKING;
	else if (is_key(key, "communication") && value)
		row->op.row.flags |= SCHEMA_DEVICE_COMM;
	else if (is_key(key, "depth") && value > 0 && value < 256)
		row->op.row.flags |= KYMO_DEVICE_DEPTH(value);
	else if (is_key(key, "tid"))
		row->tid = value;
	else if (is_key(key, "duration_ns"))
		row->duration_ns = value;
}

void trace_own_number(struct trace_own_row *row, const struct json_text *key, int64_t value)
{
	own_flag(row, key, value);
	if (is_key(key, "step") && value >= 0 && value <= UINT32_MAX)
		row->step = (uint32_t)value;
	for (int i = 0; i < KYMO_PHASE_COUNT; i++)
		if (is_key(key, own_phases[i]) && value >= 0)
			row->phase_ns[i] = (uint64_t)value;
	for (size_t i = 0; i < sizeof(own_numbers) / sizeof(own_numbers[0]); i++) {
		const uint32_t four = (uint32_t)value;

		/* Times are in the range that other events have. */
		if (!is_key(key, own_numbers[i].key) || value > INT64_C(1) << 62 ||
		    value < -(INT64_C(1) << 62))
			continue;
		row->op.row.flags |= own_numbers[i].flag;
		memcpy((char *)&row->op.row + own_numbers[i].offset,
		       own_numbers[i].bytes == 8 ? (const void *)&value : &four,
		       own_numbers[i].bytes);
	}
}

/* ---- rows ---------------------------------------------------------------------------------- */

static enum trace_outcome add_own_step(struct trace *trace, const struct trace_event *event,
				       const struct trace_own_row *row)
{
	const uint32_t track = trace_track(trace, event);
	struct trace_step *step;

	if (event->dur_ns < 0)
		return TRACE_BAD_TIME;
	step = track == TRACE_NONE ? NULL : TRACE_ADD(&trace->steps);
	if (!step)
		return TRACE_NO_MEMORY;
	step->start_ns = event->ts_ns;
	step->dur_ns = (uint64_t)event->dur_ns;
	memcpy(step->phase_ns, row->phase_ns, sizeof(step->phase_ns));
	step->number = row->step;
	step->name = trace_name(trace, TRACE_CLASS_OTHER, KYMO_SOURCE_MARK, &event->name);
	step->track = track;
	trace->processes.list[trace->tracks.list[track].process].is_known = true;
	return TRACE_STEP;
}

enum trace_outcome trace_own_add(struct trace *trace, const struct trace_event *event,
				 enum trace_class class, struct trace_own_row *row)
{
	struct trace_event caller = *event;
	struct trace_own_op *own;
	uint32_t track;

	/* The event is on a track of the queue; the row belongs to the thread that enqueued it. */
	caller.tid = (struct json_number){ .value = row->tid, .is_number = true };
	if (class == TRACE_CLASS_OWN_STEP)
		return add_own_step(trace, &caller, row);
	track = trace_track(trace, &caller);
	own = track == TRACE_NONE ? NULL : TRACE_ADD(&trace->own_ops);
	if (!own)
		return TRACE_NO_MEMORY;
	*own = row->op;
	trace->processes.list[trace->tracks.list[track].process].is_known = true;
	own->row.name = trace_name(trace, TRACE_CLASS_OTHER, KYMO_SOURCE_DEVICE, &event->name);
	own->track = track;
	return TRACE_OP;
}

enum trace_outcome trace_own_take(struct trace *trace, const struct trace_event *event,
				  enum trace_class class)
{
	struct json_scan scan = { event->args.at + 1, event->args.at + event->args.bytes + 1,
				  JSON_OK };
	struct trace_own_row row = { .op.row.core = -1 };
	struct json_number number;
	struct json_text key;

	while (event->args.bytes && json_scan_key(&scan, &key)) {
		if (!json_scan_number(&scan, 0, &number))
			break;
		if (number.is_text)
			trace_own_text(trace, &row, &key, &number.text);
		else if (number.is_number && !number.out_of_range)
			trace_own_number(&row, &key, number.value);
	}
	return trace_own_add(trace, event, class, &row);
}
