/* Processes, threads, queues, open events and waits of a trace, found by hash: a file may have very
   many of each. */
#include <stdio.h>

#include "base/grow.h"
#include "import/trace_out.h"

#define TRACKS_MOST 1000000u /* a recording has KYMO_THREADS_MAX, and lanes need some */
#define QUEUES_MOST 65536u

static struct trace *counted(const void *owner)
{
	((struct trace *)owner)->compared++;
	return (struct trace *)owner;
}

/* ---- processes and threads ----------------------------------------------------------------- */

static bool same_number(const struct json_number *a, const struct json_number *b)
{
	if (a->is_number || b->is_number)
		return a->is_number && b->is_number && a->value == b->value;
	return a->is_text == b->is_text && a->text.bytes == b->text.bytes &&
	       !memcmp(a->text.at ? a->text.at : "", b->text.at ? b->text.at : "", a->text.bytes);
}

static uint64_t number_hash(uint64_t hash, const struct json_number *number)
{
	if (number->is_number)
		return intern_hash_number(hash, (uint64_t)number->value);
	return intern_hash(hash, number->text.bytes ? number->text.at : "", number->text.bytes);
}

/* A copy that outlives the window. */
static struct json_number kept_number(struct trace *trace, const struct json_number *number)
{
	struct json_number kept = *number;

	kept.text.at = kept.is_text && !kept.is_number
			       ? trace_keep(trace, number->text.at, number->text.bytes)
			       : NULL;
	if (!kept.text.at)
		kept.text.bytes = 0;
	return kept;
}

static bool same_process(const void *owner, uint32_t number, const void *key)
{
	return same_number(&counted(owner)->processes.list[number].pid, key);
}

uint32_t trace_process(struct trace *trace, const struct json_number *pid)
{
	struct intern *index = &trace->indexes[TRACE_INDEX_PROCESSES];
	const uint64_t hash = number_hash(trace->seed + 1, pid);
	uint32_t number = intern_find(index, hash, same_process, trace, pid);
	struct trace_process *process;

	if (number != INTERN_NONE)
		return number;
	process = TRACE_ADD(&trace->processes);
	if (!process)
		return TRACE_NONE;
	number = intern_add(index, hash);
	if (number == INTERN_NONE) {
		trace->processes.count--;
		return TRACE_NONE;
	}
	process->pid = kept_number(trace, pid);
	return number;
}

uint32_t trace_owner(struct trace *trace, int64_t pid)
{
	const struct json_number number = { .value = pid, .is_number = true };

	return trace_process(trace, &number);
}

static bool same_track(const void *owner, uint32_t number, const void *key)
{
	const struct trace *trace = counted(owner);
	const struct trace_track *track = &trace->tracks.list[number];
	const struct trace_event *event = key;

	return same_number(&track->tid, &event->tid) &&
	       same_number(&trace->processes.list[track->process].pid, &event->pid);
}

uint32_t trace_track(struct trace *trace, const struct trace_event *event)
{
	struct intern *index = &trace->indexes[TRACE_INDEX_TRACKS];
	struct trace_track *track;
	uint32_t process, number;
	uint64_t hash;

	if (trace->last_track != TRACE_NONE && same_track(trace, trace->last_track, event))
		return trace->last_track;
	hash = number_hash(number_hash(trace->seed + 2, &event->pid), &event->tid);
	number = intern_find(index, hash, same_track, trace, event);
	if (number != INTERN_NONE)
		return trace->last_track = number;
	process = trace_process(trace, &event->pid);
	track = process == TRACE_NONE || trace->tracks.count >= TRACKS_MOST
			? NULL
			: TRACE_ADD(&trace->tracks);
	if (!track)
		return TRACE_NONE;
	number = intern_add(index, hash);
	if (number == INTERN_NONE) {
		trace->tracks.count--;
		return TRACE_NONE;
	}
	track->process = process;
	track->tid = kept_number(trace, &event->tid);
	return trace->last_track = number;
}

void trace_name_thread(struct trace *trace, const struct trace_event *event, const char *text)
{
	const uint32_t track = trace_track(trace, event);

	if (track != TRACE_NONE)
		snprintf(trace->tracks.list[track].name, sizeof(trace->tracks.list[track].name),
			 "%.39s", text);
}

void trace_name_process(struct trace *trace, const struct trace_event *event, const char *text)
{
	const uint32_t process = trace_process(trace, &event->pid);

	if (process != TRACE_NONE)
		snprintf(trace->processes.list[process].name,
			 sizeof(trace->processes.list[process].name), "%.63s", text);
}

/* ---- queues -------------------------------------------------------------------------------- */

static bool same_queue(const void *owner, uint32_t number, const void *key)
{
	const struct trace_queue *queue = &counted(owner)->queues.list[number];
	const struct trace_queue *wanted = key;

	return queue->stream == wanted->stream && queue->device == wanted->device &&
	       queue->context == wanted->context;
}

/* Every pair of device and stream is added once: its number is not used. */
static bool any_stream(const void *owner, uint32_t number, const void *key)
{
	(void)number;
	(void)key;
	return counted(owner);
}

/* Whether an earlier queue has this device and stream. The hash decides: a collision of 32 bits of
   it only adds the context to a name. */
static bool is_known_stream(struct trace *trace, const struct trace_queue *queue)
{
	struct intern *index = &trace->indexes[TRACE_INDEX_STREAMS];
	const uint64_t hash = intern_hash_number(
		intern_hash_number(trace->seed + 4, (uint64_t)queue->device),
		(uint64_t)queue->stream);

	if (intern_find(index, hash, any_stream, trace, NULL) != INTERN_NONE)
		return true;
	intern_add(index, hash);
	return false;
}

/* The names wait until the rank is known: see trace_name_queues(). */
uint32_t trace_queue(struct trace *trace, const struct trace_event *event)
{
	struct intern *index = &trace->indexes[TRACE_INDEX_QUEUES];
	struct trace_queue wanted = {
		.device = event->has & TRACE_EVENT_DEVICE ? event->device : event->pid.value,
		.stream = event->has & TRACE_EVENT_STREAM ? event->stream : event->tid.value,
		.context = event->context
	};
	struct trace_queue *queue;
	uint64_t hash;
	uint32_t number;

	if (wanted.stream == UINT32_MAX)
		wanted.stream = -1; /* of all streams */
	hash = intern_hash_number(trace->seed + 3, (uint64_t)wanted.device);
	hash = intern_hash_number(hash, (uint64_t)wanted.stream);
	hash = intern_hash_number(hash, (uint64_t)wanted.context);
	number = intern_find(index, hash, same_queue, trace, &wanted);
	if (number != INTERN_NONE)
		return number;
	queue = trace->queues.count >= QUEUES_MOST ? NULL : TRACE_ADD(&trace->queues);
	if (!queue)
		return TRACE_NONE;
	number = intern_add(index, hash);
	if (number == INTERN_NONE) {
		trace->queues.count--;
		return TRACE_NONE;
	}
	*queue = wanted;
	queue->other_context = is_known_stream(trace, &wanted);
	return number;
}

static uint32_t device_name(struct trace *trace, int64_t device)
{
	char text[64];

	/* Ranks of different machines have the same numbers of devices. */
	if (trace->rank >= 0 && trace->ranks > 1)
		snprintf(text, sizeof(text), "GPU %lld of rank %d", (long long)device,
			 (int)trace->rank);
	else
		snprintf(text, sizeof(text), "GPU %lld", (long long)device);
	return trace_name_text(trace, KYMO_SOURCE_DEVICE, text);
}

static uint32_t queue_name(struct trace *trace, const struct trace_queue *queue)
{
	char text[80];

	if (queue->stream < 0)
		return 0;
	if (queue->other_context)
		snprintf(text, sizeof(text), "context %lld stream %lld", (long long)queue->context,
			 (long long)queue->stream);
	else
		snprintf(text, sizeof(text), "stream %lld", (long long)queue->stream);
	return trace_name_text(trace, KYMO_SOURCE_DEVICE, text);
}

void trace_name_queues(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->queues.count; i++) {
		struct trace_queue *queue = &trace->queues.list[i];

		queue->device_name = device_name(trace, queue->device);
		queue->name = queue_name(trace, queue);
	}
}

/* ---- open events --------------------------------------------------------------------------- */

static bool same_head(const void *owner, uint32_t number, const void *key)
{
	const struct trace_open_head *head = &counted(owner)->open_heads.list[number];
	const struct trace_open_head *wanted = key;

	return head->key == wanted->key && head->is_async == wanted->is_async;
}

/* The stack of a thread or an id; INTERN_NONE: none, or no memory. */
static uint32_t open_stack(struct trace *trace, uint32_t track, uint64_t id, bool add)
{
	struct intern *index = &trace->indexes[TRACE_INDEX_OPEN];
	const struct trace_open_head wanted = { .key = id ? id : track, .is_async = id != 0 };
	const uint64_t hash = intern_hash_number(trace->seed + wanted.is_async, wanted.key);
	uint32_t number = intern_find(index, hash, same_head, trace, &wanted);
	struct trace_open_head *head;

	if (number != INTERN_NONE || !add)
		return number;
	head = TRACE_ADD(&trace->open_heads);
	number = head ? intern_add(index, hash) : INTERN_NONE;
	if (head && number == INTERN_NONE)
		trace->open_heads.count--;
	if (number != INTERN_NONE)
		*head = wanted;
	return number;
}

static struct trace_open *open_entry(struct trace *trace)
{
	struct trace_open *open;

	if (!trace->open_free)
		return TRACE_ADD(&trace->open);
	open = &trace->open.list[trace->open_free - 1];
	trace->open_free = open->before;
	memset(open, 0, sizeof(*open));
	return open;
}

struct trace_open *trace_open_add(struct trace *trace, uint32_t track, uint64_t id)
{
	const uint32_t stack = open_stack(trace, track, id, true);
	struct trace_open *open = stack == INTERN_NONE ? NULL : open_entry(trace);
	struct trace_open_head *head;

	if (!open)
		return NULL;
	head = &trace->open_heads.list[stack];
	open->track = track;
	open->id = id;
	open->stack = stack;
	open->before = head->top;
	head->top = (uint32_t)(open - trace->open.list) + 1;
	return open;
}

bool trace_open_take(struct trace *trace, uint32_t track, uint64_t id, struct trace_open *out)
{
	const uint32_t stack = open_stack(trace, track, id, false);
	struct trace_open_head *head = stack == INTERN_NONE ? NULL : &trace->open_heads.list[stack];
	struct trace_open *open;

	if (!head || !head->top)
		return false;
	open = &trace->open.list[head->top - 1];
	*out = *open;
	open->track = TRACE_NONE;
	open->before = trace->open_free;
	trace->open_free = head->top;
	head->top = out->before;
	return true;
}

/* ---- waits --------------------------------------------------------------------------------- */

static bool same_sync(const void *owner, uint32_t number, const void *key)
{
	return counted(owner)->syncs.list[number].correlation == *(const uint32_t *)key;
}

const struct trace_sync *trace_sync_find(struct trace *trace, uint32_t correlation)
{
	const uint32_t number = intern_find(&trace->indexes[TRACE_INDEX_SYNCS],
					    intern_hash_number(trace->seed + 5, correlation),
					    same_sync, trace, &correlation);

	return number == INTERN_NONE ? NULL : &trace->syncs.list[number];
}

/* The first of a correlation counts. */
void trace_sync_add(struct trace *trace, uint32_t correlation, uint32_t queue)
{
	struct trace_sync *sync = trace_sync_find(trace, correlation) ? NULL
								      : TRACE_ADD(&trace->syncs);

	if (!sync)
		return;
	if (intern_add(&trace->indexes[TRACE_INDEX_SYNCS],
		       intern_hash_number(trace->seed + 5, correlation)) == INTERN_NONE)
		trace->syncs.count--;
	else
		*sync = (struct trace_sync){ correlation, queue };
}
