/* Reads what the critical path needs from the streams of a recording. */
#include "tables/critical/critical_read.h"

#include <kymo/device.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"
#include "tables/scan/decode.h"

/* ---- operations and waits ------------------------------------------------------------------ */

enum {
	OP_QUEUED,
	OP_START,
	OP_END,
	OP_CALL_NS,
	OP_DEVICE,
	OP_QUEUE,
	OP_NAME,
	OP_ZONE,
	OP_THREAD,
	OP_FLAGS,
	OP_KIND,
	OP_MODULE,
	OP_CALL,
	OP_CORRELATION,
};

static bool names_communicate(const struct recording *recording, uint32_t name)
{
	const struct store_name *text = name < recording->name_count ? &recording->names[name]
								     : NULL;

	return text && text->text_bytes > 4 &&
	       (!memcmp(text->text, "nccl", 4) || !memcmp(text->text, "rccl", 4));
}

static bool take_wait(struct critical_row *row)
{
	struct critical_input *input = row->input;
	uint32_t name = critical_name_of(row, OP_QUEUE);
	struct critical_wait wait = { .start_ns = critical_time_of(row, OP_START),
				      .end_ns = critical_time_of(row, OP_END),
				      .thread = critical_thread_of(row, OP_THREAD, true),
				      .queue = CRITICAL_NONE,
				      .name = critical_name_of(row, OP_NAME) };

	if (wait.thread == CRITICAL_NONE || !critical_is_span(wait.start_ns, wait.end_ns))
		return true;
	if (name)
		wait.queue = critical_queue_of(row, critical_name_of(row, OP_DEVICE), name);
	if (!wait.name)
		wait.name = critical_name_of(row, OP_ZONE);
	if (!grow((void **)&input->waits.list, &input->waits.room, input->waits.count,
		  sizeof(wait)))
		return false;
	input->waits.list[input->waits.count++] = wait;
	return true;
}

/* Markers, barriers, executions and modules do not run by themselves. */
static bool critical_runs(uint64_t kind, uint64_t flags)
{
	return kind < KYMO_DEVICE_EXECUTION && kind != KYMO_DEVICE_MARKER &&
	       kind != KYMO_DEVICE_BARRIER && flags & SCHEMA_DEVICE_START &&
	       flags & SCHEMA_DEVICE_END;
}

static struct critical_op make_op(struct critical_row *row)
{
	const uint64_t flags = row->value[OP_FLAGS];
	struct critical_op op = { .queued_ns = INT64_MIN,
				  .start_ns = critical_time_of(row, OP_START),
				  .end_ns = critical_time_of(row, OP_END),
				  .queue = critical_queue_of(row, critical_name_of(row, OP_DEVICE),
							     critical_name_of(row, OP_QUEUE)),
				  .thread = CRITICAL_NONE,
				  .name = critical_name_of(row, OP_NAME),
				  .call = critical_name_of(row, OP_CALL),
				  .module = critical_name_of(row, OP_MODULE),
				  .zone = critical_name_of(row, OP_ZONE),
				  .collective = (uint32_t)row->value[OP_CORRELATION],
				  .kind = (uint16_t)row->value[OP_KIND] };

	if (flags & SCHEMA_DEVICE_QUEUED) {
		int64_t call_ns = decode_span_ns(&row->process->clock, row->value[OP_CALL_NS]);

		op.queued_ns = critical_time_of(row, OP_QUEUED);
		op.call_ns = call_ns < UINT32_MAX ? (uint32_t)call_ns : UINT32_MAX;
		op.thread = critical_thread_of(row, OP_THREAD, true);
	}
	if (flags & SCHEMA_DEVICE_COMM || names_communicate(row->input->recording, op.name))
		op.flags |= CRITICAL_COMM;
	return op;
}

static bool take_op(struct critical_row *row)
{
	struct critical_input *input = row->input;
	struct critical_op op;

	if (row->value[OP_KIND] == KYMO_DEVICE_WAIT)
		return take_wait(row);
	if (!critical_runs(row->value[OP_KIND], row->value[OP_FLAGS]))
		return true;
	row->too_large = input->ops.count >= CRITICAL_OPS_MOST;
	if (row->too_large ||
	    !grow((void **)&input->ops.list, &input->ops.room, input->ops.count, sizeof(op)))
		return false;
	op = make_op(row);
	if (op.queue == CRITICAL_NONE)
		return false;
	if (op.end_ns < op.start_ns)
		op.end_ns = op.start_ns;
	if (!critical_is_span(op.start_ns, op.end_ns))
		return true;
	if (!critical_is_span(op.queued_ns, op.start_ns)) /* some devices start before the call */
		op.queued_ns = INT64_MIN;
	input->ops.list[input->ops.count++] = op;
	return true;
}

static const struct critical_reader ops_reader = {
	"device.ops",
	{ [OP_QUEUED] = "queued_ns",
	  [OP_START] = "start_ns",
	  [OP_END] = "end_ns",
	  [OP_CALL_NS] = "call_ns",
	  [OP_DEVICE] = "device",
	  [OP_QUEUE] = "queue",
	  [OP_NAME] = "name",
	  [OP_ZONE] = "zone",
	  [OP_THREAD] = "thread",
	  [OP_FLAGS] = "flags",
	  [OP_KIND] = "kind",
	  [OP_MODULE] = "module",
	  [OP_CALL] = "call",
	  [OP_CORRELATION] = "correlation" },
	take_op,
};

/* ---- steps --------------------------------------------------------------------------------- */

enum { STEP_START, STEP_NS, STEP_NUMBER, STEP_THREAD };

static bool critical_take_step(struct critical_row *row)
{
	struct critical_input *input = row->input;
	struct critical_step step = { .start_ns = critical_time_of(row, STEP_START),
				      .thread = critical_thread_of(row, STEP_THREAD, true),
				      .step = (uint32_t)row->value[STEP_NUMBER],
				      .process = row->process_index };

	step.end_ns = critical_end_after(row, step.start_ns, STEP_NS);
	if (step.thread == CRITICAL_NONE || !critical_is_span(step.start_ns, step.end_ns))
		return true;
	if (!grow((void **)&input->steps.list, &input->steps.room, input->steps.count,
		  sizeof(step)))
		return false;
	input->steps.list[input->steps.count++] = step;
	return true;
}

static const struct critical_reader steps_reader = {
	"trace.steps",
	{ [STEP_START] = "start_ns",
	  [STEP_NS] = "duration_ns",
	  [STEP_NUMBER] = "step",
	  [STEP_THREAD] = "thread" },
	critical_take_step,
};

/* The last step of the process that begins at or before the moment; NULL: none. */
static const struct critical_step *step_before(const struct critical_input *input, uint32_t process,
					       int64_t ns)
{
	size_t low = 0, high = input->steps.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct critical_step *step = &input->steps.list[middle];

		if (step->process < process || (step->process == process && step->start_ns <= ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low && input->steps.list[low - 1].process == process ? &input->steps.list[low - 1]
								    : NULL;
}

bool critical_step_at(const struct critical_input *input, uint32_t process, int64_t ns,
		      uint32_t *out_step)
{
	const struct critical_step *step = step_before(input, process, ns);

	if (!step || ns > step->end_ns)
		return false;
	*out_step = step->step;
	return true;
}

bool critical_steps_of(const struct critical_input *input, uint32_t process, int64_t *from_ns,
		       int64_t *to_ns)
{
	const struct critical_range *range = input->ranges ? &input->ranges[process] : NULL;

	if (!range || range->to_ns < range->from_ns)
		return false;
	*from_ns = range->from_ns;
	*to_ns = range->to_ns;
	return true;
}

/* Once: it is asked for every piece of the path that is in no step. */
static bool find_ranges(struct critical_input *input)
{
	const size_t processes = input->recording->process_count;

	input->ranges = malloc((processes + 1) * sizeof(*input->ranges));
	if (!input->ranges)
		return false;
	for (size_t i = 0; i < processes; i++)
		input->ranges[i] = (struct critical_range){ INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < input->steps.count; i++) {
		const struct critical_step *step = &input->steps.list[i];
		struct critical_range *range = &input->ranges[step->process];

		range->from_ns = step->start_ns < range->from_ns ? step->start_ns : range->from_ns;
		range->to_ns = step->end_ns > range->to_ns ? step->end_ns : range->to_ns;
	}
	return true;
}

/* ---- collectives --------------------------------------------------------------------------- */

enum {
	PART_START,
	PART_END,
	PART_SEQ,
	PART_GROUP,
	PART_OP,
	PART_THREAD,
	PART_FLAGS,
	PART_CORRELATION
};

#define PART_KNOWN (SCHEMA_COLLECTIVE_START | SCHEMA_COLLECTIVE_END | SCHEMA_COLLECTIVE_SEQ)

static bool critical_take_part(struct critical_row *row)
{
	struct critical_input *input = row->input;
	const uint64_t flags = row->value[PART_FLAGS];
	const uint32_t correlation = (uint32_t)row->value[PART_CORRELATION];
	struct critical_part part = { .seq = row->value[PART_SEQ],
				      .start_ns = critical_time_of(row, PART_START),
				      .end_ns = critical_time_of(row, PART_END),
				      .group = critical_name_of(row, PART_GROUP),
				      .process = row->process_index,
				      .name = critical_name_of(row, PART_OP),
				      .op = correlation ? correlation : CRITICAL_NONE,
				      .meeting = CRITICAL_NONE };

	if ((flags & PART_KNOWN) != PART_KNOWN || flags & SCHEMA_COLLECTIVE_P2P ||
	    !critical_is_span(part.start_ns, part.end_ns))
		return true;
	part.thread = critical_thread_of(row, PART_THREAD, false);
	if (!correlation && (part.thread == CRITICAL_NONE || flags & SCHEMA_COLLECTIVE_ASYNC))
		return true;
	if (!grow((void **)&input->parts.list, &input->parts.room, input->parts.count,
		  sizeof(part)))
		return false;
	input->parts.list[input->parts.count++] = part;
	return true;
}

static const struct critical_reader parts_reader = {
	"dist.collectives",
	{ [PART_START] = "start_ns",
	  [PART_END] = "end_ns",
	  [PART_SEQ] = "seq",
	  [PART_GROUP] = "group_name",
	  [PART_OP] = "op",
	  [PART_THREAD] = "thread",
	  [PART_FLAGS] = "flags",
	  [PART_CORRELATION] = "correlation" },
	critical_take_part,
};

static int compare_process_time(uint32_t process, uint32_t other_process, int64_t ns,
				int64_t other_ns)
{
	if (process != other_process)
		return process < other_process ? -1 : 1;
	return ns < other_ns ? -1 : ns > other_ns;
}

static int compare_part_ops(const void *left, const void *right)
{
	const struct critical_part *a = left, *b = right;

	return compare_process_time(a->process, b->process, (int64_t)a->op, (int64_t)b->op);
}

/* The part of a process whose operation has that correlation; NULL: none. */
static struct critical_part *find_part(const struct critical_input *input, uint32_t process,
				       uint32_t correlation)
{
	const struct critical_part wanted = { .process = process, .op = correlation };

	return input->parts.count ? bsearch(&wanted, input->parts.list, input->parts.count,
					    sizeof(wanted), compare_part_ops)
				  : NULL;
}

static int critical_compare_parts(const void *left, const void *right)
{
	const struct critical_part *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return compare_process_time(a->process, b->process, a->start_ns, b->start_ns);
}

/* Correlations become operations. A part whose operation is not there is dropped. */
static void join_parts(struct critical_input *input)
{
	size_t kept = 0;

	if (input->parts.count)
		qsort(input->parts.list, input->parts.count, sizeof(*input->parts.list),
		      compare_part_ops);
	for (size_t i = 0; i < input->ops.count; i++) {
		struct critical_op *op = &input->ops.list[i];
		struct critical_part *part =
			op->flags & CRITICAL_COMM
				? find_part(input, input->queues.list[op->queue].process,
					    op->collective)
				: NULL;

		op->collective = CRITICAL_NONE;
		if (part)
			part->point = (uint32_t)i + 1; /* for the moment */
	}
	for (size_t i = 0; i < input->parts.count; i++) {
		struct critical_part *part = &input->parts.list[i];

		if (part->op != CRITICAL_NONE && !part->point)
			continue;
		if (part->op != CRITICAL_NONE)
			part->op = part->point - 1;
		input->parts.list[kept++] = *part;
	}
	input->parts.count = kept;
	if (kept)
		qsort(input->parts.list, kept, sizeof(*input->parts.list), critical_compare_parts);
	for (size_t i = 0; i < kept; i++)
		if (input->parts.list[i].op != CRITICAL_NONE)
			input->ops.list[input->parts.list[i].op].collective = (uint32_t)i;
}

/* ---- zones --------------------------------------------------------------------------------- */

enum { ZONE_START, ZONE_NS, ZONE_NAME, ZONE_THREAD };

static bool critical_take_zone(struct critical_row *row)
{
	struct critical_input *input = row->input;
	struct critical_zone zone = { .start_ns = critical_time_of(row, ZONE_START),
				      .thread = critical_thread_of(row, ZONE_THREAD, false),
				      .name = critical_name_of(row, ZONE_NAME) };

	zone.end_ns = critical_end_after(row, zone.start_ns, ZONE_NS);
	if (zone.thread == CRITICAL_NONE || !critical_is_span(zone.start_ns, zone.end_ns))
		return true;
	row->too_large = input->zones.count >= CRITICAL_ZONES_MOST;
	if (row->too_large || !grow((void **)&input->zones.list, &input->zones.room,
				    input->zones.count, sizeof(zone)))
		return false;
	input->zones.list[input->zones.count++] = zone;
	return true;
}

static const struct critical_reader zones_reader = {
	"trace.zones",
	{ [ZONE_START] = "start_ns",
	  [ZONE_NS] = "duration_ns",
	  [ZONE_NAME] = "name",
	  [ZONE_THREAD] = "thread" },
	critical_take_zone,
};

static int compare_zones(const void *left, const void *right)
{
	const struct critical_zone *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns > b->end_ns ? -1 : a->end_ns < b->end_ns;
}

bool critical_load_zones(struct critical_input *input, bool *too_large)
{
	if (!critical_read_table(input, &zones_reader, too_large))
		return false;
	if (input->zones.count)
		qsort(input->zones.list, input->zones.count, sizeof(*input->zones.list),
		      compare_zones);
	for (size_t i = input->zones.count; i-- > 0;) {
		struct critical_thread *thread = &input->threads.list[input->zones.list[i].thread];

		thread->first = (uint32_t)i;
		thread->zone_count++;
	}
	return true;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int compare_ops(const void *left, const void *right)
{
	const struct critical_op *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int compare_waits(const void *left, const void *right)
{
	const struct critical_wait *a = left, *b = right;

	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int critical_compare_steps(const void *left, const void *right)
{
	const struct critical_step *a = left, *b = right;

	return compare_process_time(a->process, b->process, a->start_ns, b->start_ns);
}

static void sort_rows(struct critical_input *input)
{
	if (input->ops.count)
		qsort(input->ops.list, input->ops.count, sizeof(*input->ops.list), compare_ops);
	if (input->waits.count)
		qsort(input->waits.list, input->waits.count, sizeof(*input->waits.list),
		      compare_waits);
	if (input->steps.count)
		qsort(input->steps.list, input->steps.count, sizeof(*input->steps.list),
		      critical_compare_steps);
}

bool critical_load(struct critical_input *input, const struct recording *recording, bool *too_large)
{
	*input = (struct critical_input){ .recording = recording };
	input->thread_of = malloc((recording->thread_count + 1) * sizeof(*input->thread_of));
	if (!input->thread_of)
		return false;
	memset(input->thread_of, 0xff, (recording->thread_count + 1) * sizeof(*input->thread_of));
	if (!critical_read_table(input, &ops_reader, too_large) ||
	    !critical_read_table(input, &parts_reader, too_large))
		return false;
	if (!input->ops.count && !input->parts.count)
		return true; /* a program without devices and ranks: the host is the path */
	if (!critical_read_table(input, &steps_reader, too_large))
		return false;
	sort_rows(input);
	join_parts(input);
	return find_ranges(input) && critical_load_zones(input, too_large);
}

void critical_input_free(struct critical_input *input)
{
	free(input->threads.list);
	free(input->queues.list);
	free(input->ops.list);
	free(input->waits.list);
	free(input->steps.list);
	free(input->parts.list);
	free(input->zones.list);
	free(input->handovers.list);
	free(input->ranges);
	free(input->thread_of);
}
