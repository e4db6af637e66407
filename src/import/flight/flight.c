#include "import/flight/flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/flight/pickle.h"

#define PICKLE_BYTES_MOST (UINT64_C(256) << 20)
#define TIME_MOST (INT64_C(1) << 62)
#define FIRST_PART (256u << 10)

/* ---- entries ------------------------------------------------------------------------------- */

struct entry {
	struct trace_event event; /* pid, tid */
	struct json_text op, group, state, dtype, thread;
	struct json_text function, file; /* of the caller */
	int64_t line;
	int64_t created, started, completed;
	int64_t sequence, p2p_sequence;
	int64_t in_bytes, out_bytes; /* elements, until the type is known */
	bool is_p2p, retired;
};

/* A number, or null and others as 0. */
static bool entry_number(struct json_scan *scan, int64_t *out)
{
	struct json_number number;

	if (!json_scan_number(scan, 0, &number))
		return false;
	*out = number.is_number && !number.out_of_range ? number.value : 0;
	return true;
}

static bool entry_text(struct json_scan *scan, struct json_text *out)
{
	return json_scan_next(scan) == '"' ? json_scan_text(scan, out) : json_scan_skip(scan);
}

static bool entry_flag(struct json_scan *scan, bool *out)
{
	*out = json_scan_next(scan) == 't';
	return json_scan_skip(scan);
}

/* The first text of a list. */
static bool entry_first(struct json_scan *scan, struct json_text *out)
{
	bool first = true;

	if (json_scan_next(scan) != '[')
		return entry_text(scan, out);
	scan->at++;
	while (json_scan_item(scan)) {
		if (!(first ? entry_text(scan, out) : json_scan_skip(scan)))
			return false;
		first = false;
	}
	return scan->state == JSON_OK;
}

/* [[4, 8], [2]]: the elements of all, here 34. Beyond 2^58: -1. */
static bool entry_elements(struct json_scan *scan, int64_t *out)
{
	int64_t sum = 0, product, size;

	if (json_scan_next(scan) != '[')
		return json_scan_skip(scan);
	scan->at++;
	while (json_scan_item(scan)) {
		if (json_scan_next(scan) != '[')
			return json_scan_skip(scan);
		scan->at++;
		product = 1;
		while (json_scan_item(scan)) {
			if (!entry_number(scan, &size))
				return false;
			if (size < 0 || __builtin_mul_overflow(product, size, &product) ||
			    product > INT64_C(1) << 58)
				product = -1;
		}
		sum = product < 0 || sum < 0 || sum > INT64_C(1) << 58 ? -1 : sum + product;
	}
	*out = sum;
	return scan->state == JSON_OK;
}

/* ---- the caller ---------------------------------------------------------------------------- */

static bool is_of_torch(const struct json_text *file)
{
	static const char word[] = "/torch/";

	return file->bytes && memmem(file->at, file->bytes, word, sizeof(word) - 1);
}

/* One frame; the first that is not in torch's own files is the caller. */
static bool entry_frame(struct json_scan *scan, struct entry *entry)
{
	struct json_text key, function = { 0 }, file = { 0 };
	int64_t line = 0;
	bool ok = true;

	if (json_scan_next(scan) != '{')
		return json_scan_skip(scan);
	scan->at++;
	while (ok && json_scan_key(scan, &key))
		ok = JSON_TEXT_IS(&key, "name")	      ? entry_text(scan, &function)
		     : JSON_TEXT_IS(&key, "filename") ? entry_text(scan, &file)
		     : JSON_TEXT_IS(&key, "line")     ? entry_number(scan, &line)
						      : json_scan_skip(scan);
	if (ok && !entry->function.bytes && function.bytes && !is_of_torch(&file)) {
		entry->function = function;
		entry->file = file;
		entry->line = line;
	}
	return ok && scan->state == JSON_OK;
}

static bool entry_frames(struct json_scan *scan, struct entry *entry)
{
	if (json_scan_next(scan) != '[')
		return json_scan_skip(scan);
	scan->at++;
	while (json_scan_item(scan))
		if (!entry_frame(scan, entry))
			return false;
	return scan->state == JSON_OK;
}

/* "step (train.py:12)" */
static uint32_t caller_name(struct trace *trace, const struct entry *entry)
{
	char function[512], file[512], text[1200];
	const char *slash;

	if (!entry->function.bytes)
		return 0;
	json_text_plain(&entry->function, function, sizeof(function));
	json_text_plain(&entry->file, file, sizeof(file));
	slash = strrchr(file, '/');
	snprintf(text, sizeof(text), "%s (%s:%lld)", function, slash ? slash + 1 : file,
		 (long long)entry->line);
	return trace_name_text(trace, KYMO_SOURCE_C, text);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool entry_field(struct json_scan *scan, const struct json_text *key, struct entry *entry)
{
#define FIELD(word, take) \
	if (JSON_TEXT_IS(key, word)) \
	return take
	FIELD("profiling_name", entry_text(scan, &entry->op));
	FIELD("process_group", entry_first(scan, &entry->group));
	FIELD("state", entry_text(scan, &entry->state));
	FIELD("input_dtypes", entry_first(scan, &entry->dtype));
	FIELD("output_dtypes",
	      entry->dtype.bytes ? json_scan_skip(scan) : entry_first(scan, &entry->dtype));
	FIELD("input_sizes", entry_elements(scan, &entry->in_bytes));
	FIELD("output_sizes", entry_elements(scan, &entry->out_bytes));
	FIELD("time_created_ns", entry_number(scan, &entry->created));
	FIELD("time_discovered_started_ns", entry_number(scan, &entry->started));
	FIELD("time_discovered_completed_ns", entry_number(scan, &entry->completed));
	FIELD("collective_seq_id", entry_number(scan, &entry->sequence));
	FIELD("seq_id", entry_number(scan, &entry->sequence)); /* before version 2 */
	FIELD("p2p_seq_id", entry_number(scan, &entry->p2p_sequence));
	FIELD("is_p2p", entry_flag(scan, &entry->is_p2p));
	FIELD("retired", entry_flag(scan, &entry->retired));
	FIELD("thread_id", json_scan_number(scan, 0, &entry->event.tid));
	FIELD("thread_name", entry_text(scan, &entry->thread));
	FIELD("frames", entry_frames(scan, entry));
#undef FIELD
	return json_scan_skip(scan);
}

/* "send 0->3", "recv 0<-3": 3, a rank of the group; -1: none. */
static int32_t peer_in(const char *op)
{
	const char *arrow = strstr(op, "->") ? strstr(op, "->") : strstr(op, "<-");
	long peer = arrow ? strtol(arrow + 2, NULL, 10) : -1;

	return peer >= 0 && peer < INT32_MAX ? (int32_t)peer : -1;
}

static uint32_t entry_flags(const struct entry *entry)
{
	const bool ended = entry->retired || JSON_TEXT_IS(&entry->state, "completed");
	const bool begun = ended || JSON_TEXT_IS(&entry->state, "started");
	uint32_t flags = SCHEMA_COLLECTIVE_ASYNC | SCHEMA_COLLECTIVE_ENQUEUE;

	flags |= entry->is_p2p ? SCHEMA_COLLECTIVE_P2P : 0;
	flags |= (entry->is_p2p ? entry->p2p_sequence : entry->sequence) > 0 ? SCHEMA_COLLECTIVE_SEQ
									     : 0;
	flags |= entry->started > 0 ? SCHEMA_COLLECTIVE_START : begun ? SCHEMA_COLLECTIVE_BEGUN : 0;
	flags |= entry->completed > 0 ? SCHEMA_COLLECTIVE_END : ended ? SCHEMA_COLLECTIVE_ENDED : 0;
	return flags;
}

static void entry_size(struct trace *trace, const struct entry *entry, struct trace_flight *flight)
{
	const int64_t elements = entry->in_bytes > 0 ? entry->in_bytes : entry->out_bytes;
	char text[64];
	uint32_t bytes = 0;
	const char *word;

	json_text_plain(&entry->dtype, text, sizeof(text));
	word = trace_comm_type(text, &bytes);
	if (word || text[0])
		flight->dtype = trace_name_text(trace, KYMO_SOURCE_DEVICE, word ? word : text);
	if (elements > 0)
		flight->bytes = (uint64_t)elements * bytes;
}

static enum trace_outcome entry_add(struct trace *trace, struct entry *entry)
{
	struct trace_flight *flight;
	char op[256], thread[64];
	const char *word;
	uint32_t track;

	if (entry->created <= 0)
		return TRACE_NO_TIME;
	if (entry->created > TIME_MOST || entry->started > TIME_MOST ||
	    entry->completed > TIME_MOST)
		return TRACE_BAD_TIME;
	/* A dump has no pid. */
	entry->event.pid = (struct json_number){ .value = trace->rank + 1, .is_number = true };
	track = trace_track(trace, &entry->event);
	flight = track == TRACE_NONE ? NULL : TRACE_ADD(&trace->flights);
	if (!flight)
		return TRACE_NO_MEMORY;
	if (json_text_plain(&entry->thread, thread, sizeof(thread)))
		trace_name_thread(trace, &entry->event, thread);
	trace->processes.list[trace->tracks.list[track].process].is_known = true;
	json_text_plain(&entry->op, op, sizeof(op));
	word = trace_comm_operation(op);
	flight->created_ns = entry->created;
	flight->started_ns = entry->started > 0 ? entry->started : 0;
	flight->ended_ns = entry->completed > 0 ? entry->completed : 0;
	flight->seq = (uint64_t)(entry->is_p2p ? entry->p2p_sequence : entry->sequence);
	flight->op = trace_name_text(trace, KYMO_SOURCE_DEVICE, word ? word : op);
	flight->group = trace_name(trace, TRACE_CLASS_COUNT, KYMO_SOURCE_DEVICE, &entry->group);
	flight->zone = caller_name(trace, entry);
	flight->track = track;
	flight->flags = entry_flags(entry);
	flight->peer = entry->is_p2p ? peer_in(op) : -1;
	entry_size(trace, entry, flight);
	return TRACE_COLLECTIVE;
}

bool flight_entry(struct trace *trace, struct json_scan *scan)
{
	static const struct json_text category = { .at = "flight recorder", .bytes = 15 };
	const struct json_text none = { .at = "" };
	struct entry entry = { .group = none };
	struct json_text key;

	scan->at++;
	while (json_scan_key(scan, &key))
		if (!entry_field(scan, &key, &entry))
			return false;
	if (scan->state != JSON_OK)
		return false;
	trace_count(trace, &category, 0, entry_add(trace, &entry), 1);
	return true;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* "[0, 1, 2]", as a text or a list: "0,1,2". */
static void group_members(struct trace *trace, const char *from, size_t bytes,
			  struct trace_group *group)
{
	char members[KYMO_NAME_BYTES_MAX];
	size_t used = 0;

	for (size_t i = 0; i < bytes; i++) {
		const bool digit = from[i] >= '0' && from[i] <= '9';

		if (digit && (!i || from[i - 1] < '0' || from[i - 1] > '9'))
			group->size++;
		if ((digit || (from[i] == ',' && used)) && used + 1 < sizeof(members))
			members[used++] = from[i];
	}
	members[used] = '\0';
	if (used && used + 1 < sizeof(members)) /* a longer list is not known */
		group->members = trace_name_text(trace, KYMO_SOURCE_DEVICE, members);
}

static bool same_flight_group(const void *owner, uint32_t number, const void *key)
{
	return ((const struct trace *)owner)->groups.list[number].name == *(const uint32_t *)key;
}

static bool group_field(struct trace *trace, struct json_scan *scan, const struct json_text *key,
			struct trace_group *group)
{
	struct json_text text = { 0 };
	const char *from;

	if (JSON_TEXT_IS(key, "desc") || JSON_TEXT_IS(key, "name")) {
		if (!entry_text(scan, &text))
			return false;
		group->is_world = group->is_world || JSON_TEXT_IS(&text, "default_pg");
		return true;
	}
	json_scan_next(scan);
	from = scan->at;
	if (!json_scan_skip(scan))
		return false;
	if (JSON_TEXT_IS(key, "ranks"))
		group_members(trace, from, (size_t)(scan->at - from), group);
	return true;
}

/* Names that the window moves away from are copied by trace_name(). */
static bool flight_take_group(struct trace *trace, struct json_scan *scan,
			      const struct json_text *name)
{
	struct trace_group group = { .name = trace_name(trace, TRACE_CLASS_COUNT,
							KYMO_SOURCE_DEVICE, name),
				     .is_world = !name->bytes || JSON_TEXT_IS(name, "0") };
	const uint64_t hash = intern_hash_number(trace->seed + 6, group.name);
	struct intern *index = &trace->indexes[TRACE_INDEX_GROUPS];
	struct trace_group *added;
	struct json_text key;

	if (json_scan_next(scan) != '{')
		return json_scan_skip(scan);
	scan->at++;
	while (json_scan_key(scan, &key))
		if (!group_field(trace, scan, &key, &group))
			return false;
	if (scan->state != JSON_OK)
		return false;
	if (group.is_world && group.size && trace->ranks < 0)
		trace->ranks = (int32_t)group.size;
	if (intern_find(index, hash, same_flight_group, trace, &group.name) != INTERN_NONE)
		return true;
	added = TRACE_ADD(&trace->groups);
	if (added && intern_add(index, hash) == INTERN_NONE)
		trace->groups.count--;
	else if (added)
		*added = group;
	return true;
}

bool flight_groups(struct trace *trace, struct json_scan *scan)
{
	struct json_text name;

	if (json_scan_next(scan) != '{')
		return json_scan_skip(scan);
	scan->at++;
	while (json_scan_key(scan, &name))
		if (!flight_take_group(trace, scan, &name))
			return false;
	return scan->state == JSON_OK;
}

/* ---- pickles ------------------------------------------------------------------------------- */

static int flight_read_whole(struct input *input, struct buf *out, struct kymo_error *err)
{
	char *part = malloc(FIRST_PART);
	long got = part ? 1 : -1;

	while (got > 0 && out->used <= PICKLE_BYTES_MOST) {
		got = input->gzip ? input_gzip_read(input, part, FIRST_PART)
				  : input_raw(input, part, FIRST_PART);
		if (got > 0)
			buf_add(out, part, (size_t)got);
	}
	free(part);
	if (!part || out->failed)
		return error_set(err, ENOMEM, "no memory for a pickle");
	if (got < 0)
		return error_set(err, EPROTO, "%s", input->damage.text);
	return got > 0 ? error_set(err, EFBIG, "it is a pickle of more than 256 MB") : 0;
}

int flight_read_pickle(struct trace *trace, struct input *input, struct kymo_error *damage,
		       struct kymo_error *err)
{
	struct buf pickle = { 0 }, json = { 0 };
	struct input text;
	int rc = flight_read_whole(input, &pickle, err);

	if (!rc)
		rc = pickle_to_json(buf_get(&pickle), pickle.used, &json, err);
	buf_fini(&pickle);
	if (!rc && *buf_get(&json) != '{')
		rc = error_set(err, EINVAL, "it is a pickle without entries of a flight recorder");
	if (!rc)
		rc = input_open_memory(&text, buf_get(&json), json.used, err);
	if (!rc) {
		rc = import_events(trace, &text, damage, err);
		input_close(&text);
	}
	buf_fini(&json);
	return rc;
}
