#include "import/trace_event.h"

#define TIME_MOST (INT64_C(1) << 62)

/* ---- arguments ----------------------------------------------------------------------------- */

static bool take_integer(struct json_scan *scan, int64_t *out, struct trace_event *event,
			 uint32_t flag)
{
	struct json_number number;

	if (!json_scan_number(scan, 0, &number))
		return false;
	if (!number.is_number || number.out_of_range)
		return true;
	*out = number.value;
	event->has |= flag;
	return true;
}

static bool event_take_text(struct json_scan *scan, struct json_text *out)
{
	if (json_scan_next(scan) != '"')
		return json_scan_skip(scan);
	return json_scan_text(scan, out);
}

/* One list: the length of a key decides first, then its bytes. */
#define INTEGER(word, field, flag) \
	if (JSON_TEXT_IS(key, word)) \
	return take_integer(scan, &event->field, event, flag)
#define TEXT(word, field) \
	if (JSON_TEXT_IS(key, word)) \
	return event_take_text(scan, &event->field)

static bool take_argument(struct json_scan *scan, const struct json_text *key,
			  struct trace_event *event)
{
	switch (key->bytes) {
	case 3: INTEGER("Seq", comm.sequence, 0); break;
	case 4:
		INTEGER("step", step, TRACE_EVENT_STEP);
		INTEGER("line", line, 0);
		TEXT("file", file);
		break;
	case 5:
		INTEGER("owner", owner, TRACE_EVENT_OWNER);
		INTEGER("bytes", bytes, 0);
		INTEGER("Bytes", bytes, 0);
		TEXT("dtype", comm.dtype);
		break;
	case 6:
		INTEGER("device", device, TRACE_EVENT_DEVICE);
		INTEGER("stream", stream, TRACE_EVENT_STREAM);
		INTEGER("cut_ns", cut_ns, 0);
		break;
	case 7: INTEGER("context", context, 0); break;
	case 8: INTEGER("graph id", graph, 0); break;
	case 9: INTEGER("Device Id", device_id, 0); break;
	case 10: INTEGER("Group size", comm.group_size, 0); break;
	case 11:
		INTEGER("correlation", correlation, TRACE_EVENT_CORRELATION);
		INTEGER("External id", external, TRACE_EVENT_EXTERNAL);
		INTEGER("external id", external, TRACE_EVENT_EXTERNAL);
		INTEGER("Device Type", device_type, TRACE_EVENT_MEMORY);
		break;
	case 13:
		INTEGER("Fwd thread id", forward_thread, 0);
		INTEGER("In msg nelems", comm.in_elements, 0);
		break;
	case 14: INTEGER("Out msg nelems", comm.out_elements, 0); break;
	case 15:
		INTEGER("Sequence number", sequence, TRACE_EVENT_SEQUENCE);
		INTEGER("Total Allocated", total_bytes, TRACE_EVENT_TOTAL);
		TEXT("Collective name", comm.name);
		break;
	case 18: TEXT("Process Group Name", comm.group); break;
	case 19: TEXT("Process Group Ranks", comm.ranks); break;
	case 25: TEXT("Process Group Description", comm.group_text); break;
	default: break;
	}
	return json_scan_skip(scan);
}

static bool event_take_arguments(struct json_scan *scan, struct trace_event *event)
{
	struct json_text key;

	if (json_scan_next(scan) != '{')
		return json_scan_skip(scan);
	event->args.at = scan->at++;
	while (json_scan_key(scan, &key))
		if (!take_argument(scan, &key, event))
			return false;
	event->args.bytes = (uint32_t)(scan->at - event->args.at);
	return scan->state == JSON_OK;
}

/* ---- the event ----------------------------------------------------------------------------- */

static bool event_take_time(struct json_scan *scan, int64_t *out, struct trace_event *event,
			    uint32_t flag)
{
	struct json_number number;

	if (!json_scan_number(scan, 3, &number))
		return false;
	if (!number.is_number)
		return true;
	if (number.out_of_range || number.value > TIME_MOST || number.value < -TIME_MOST)
		event->has |= TRACE_EVENT_BAD_TIME;
	*out = number.value;
	event->has |= flag;
	return true;
}

static bool take_phase(struct json_scan *scan, struct trace_event *event)
{
	struct json_text text = { 0 };

	if (!event_take_text(scan, &text))
		return false;
	event->ph = text.bytes == 1 ? text.at[0] : 0;
	return true;
}

static bool take_field(struct json_scan *scan, const struct json_text *key,
		       struct trace_event *event)
{
	switch (key->bytes) {
	case 2:
		if (JSON_TEXT_IS(key, "ph"))
			return take_phase(scan, event);
		if (JSON_TEXT_IS(key, "ts"))
			return event_take_time(scan, &event->ts_ns, event, TRACE_EVENT_TS);
		if (JSON_TEXT_IS(key, "id"))
			return json_scan_number(scan, 0, &event->id);
		break;
	case 3:
		if (JSON_TEXT_IS(key, "dur"))
			return event_take_time(scan, &event->dur_ns, event, TRACE_EVENT_DUR);
		if (JSON_TEXT_IS(key, "pid"))
			return json_scan_number(scan, 0, &event->pid);
		if (JSON_TEXT_IS(key, "tid"))
			return json_scan_number(scan, 0, &event->tid);
		TEXT("cat", cat);
		break;
	case 4:
		TEXT("name", name);
		if (JSON_TEXT_IS(key, "args"))
			return event_take_arguments(scan, event);
		break;
	default: break;
	}
	return json_scan_skip(scan);
}

void trace_event_clear(struct trace_event *event)
{
	memset(event, 0, sizeof(*event));
	event->device_id = event->graph = -1;
	event->comm.in_elements = event->comm.out_elements = event->comm.group_size = -1;
	event->comm.sequence = -1;
}

bool trace_event_read(struct json_scan *scan, struct trace_event *out)
{
	struct json_text key;

	trace_event_clear(out);
	scan->at++;
	while (json_scan_key(scan, &key))
		if (!take_field(scan, &key, out))
			return false;
	return scan->state == JSON_OK;
}
