/* From the lists of a trace to the processes of a recording. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "import/trace_out.h"

#define OTHER_PID 100000000 /* what is added to a pid that another machine has used */
#define KINETO_CPU 0
#define SAMPLED_TID (1 << 30) /* as in exports: tracks that are no threads of the program */
#define PROCESSES_MOST 256u /* of one file */

/* ---- processes and threads ----------------------------------------------------------------- */

struct writer_process *trace_out_process(struct trace_out *out, uint32_t track)
{
	return &out->processes[out->target[out->trace->tracks.list[track].process]];
}

static int32_t trace_write_tid_of(const struct trace_track *track, uint32_t number)
{
	return track->tid.is_number ? (int32_t)(track->tid.value & INT32_MAX) : (int32_t)number + 1;
}

static void lane_name(const struct trace_track *track, int32_t tid, uint32_t number, char *out,
		      size_t bytes)
{
	char text[40];

	if (track->name[0])
		snprintf(text, sizeof(text), "%s", track->name);
	else if (track->tid.is_text && !track->tid.is_number && track->tid.text.bytes)
		snprintf(text, sizeof(text), "%.*s", (int)track->tid.text.bytes,
			 track->tid.text.at);
	else
		snprintf(text, sizeof(text), "thread %lld",
			 track->tid.is_number ? (long long)track->tid.value : (long long)tid);
	if (number)
		snprintf(out, bytes, "%.26s (lane %u)", text, number + 1);
	else
		snprintf(out, bytes, "%s", text);
}

/* The index of each lane in its process counts from 1. */
uint32_t trace_out_lane(struct trace_out *out, uint32_t track_number, uint32_t number)
{
	struct trace_track *track = &out->trace->tracks.list[track_number];
	const uint32_t process = out->target[track->process];
	struct trace_lane *lane;

	if (!number && track->lane)
		return track->lane;
	if ((!out->lanes.count && !TRACE_ADD(&out->lanes)) ||
	    out->lane_counts[process] >= KYMO_THREADS_MAX - 1)
		return 0;
	lane = TRACE_ADD(&out->lanes);
	if (!lane || !grow_zeroed((void **)&out->lane_index, &out->lane_index_room, out->lanes.room,
				  sizeof(uint32_t)))
		return 0;
	lane->process = process;
	lane->tid = trace_write_tid_of(track, track_number);
	lane_name(track, lane->tid, number, lane->name, sizeof(lane->name));
	out->lane_index[out->lanes.count - 1] = ++out->lane_counts[process];
	if (!number)
		track->lane = (uint32_t)(out->lanes.count - 1);
	return (uint32_t)(out->lanes.count - 1);
}

static uint32_t trace_write_thread_of(struct trace_out *out, uint32_t track)
{
	uint32_t lane = trace_out_lane(out, track, 0);

	return lane ? out->lane_index[lane] : 0;
}

static bool is_real(const struct trace_process *process)
{
	return (process->zones || process->is_known) &&
	       (!process->pid.is_number || process->pid.value >= 0);
}

/* Rows of devices, of the profiler and of unknown processes belong to the main one; so do those of
   processes beyond PROCESSES_MOST, because each has files and buffers of its own. */
static void choose_targets(struct trace_out *out)
{
	const struct trace *trace = out->trace;
	uint32_t main = 0;

	for (uint32_t i = 1; i < trace->processes.count; i++)
		if (trace->processes.list[i].zones > trace->processes.list[main].zones)
			main = i;
	out->from[out->process_count++] = main;
	for (uint32_t i = 0; i < trace->processes.count; i++) {
		out->target[i] = 0;
		if (i == main || !is_real(&trace->processes.list[i]) ||
		    out->process_count >= PROCESSES_MOST)
			continue;
		out->target[i] = (uint32_t)out->process_count;
		out->from[out->process_count++] = i;
	}
}

static bool same_pid(const void *owner, uint32_t number, const void *key)
{
	return ((const struct import_pids *)owner)->list[number] == *(const int32_t *)key;
}

static bool is_pid_taken(const struct import_pids *taken, int32_t pid)
{
	return intern_find(&taken->index, intern_hash_number(1, (uint64_t)pid), same_pid, taken,
			   &pid) != INTERN_NONE;
}

/* Equal pids of different machines or containers: views count by pid. */
static int32_t choose_pid(struct import_pids *taken, const struct json_number *number)
{
	int64_t pid = number->is_number && number->value > 0 && number->value < INT32_MAX
			      ? number->value
			      : 1;

	while (pid < INT32_MAX && is_pid_taken(taken, (int32_t)pid))
		pid += OTHER_PID;
	while (pid >= INT32_MAX && is_pid_taken(taken, ++taken->free_pid))
		;
	if (pid >= INT32_MAX)
		pid = taken->free_pid;
	if (grow((void **)&taken->list, &taken->room, taken->count, sizeof(*taken->list)) &&
	    intern_add(&taken->index, intern_hash_number(1, (uint64_t)pid)) != INTERN_NONE)
		taken->list[taken->count++] = (int32_t)pid;
	return (int32_t)pid;
}

static int begin_process(struct trace_out *out, uint32_t number, struct import_pids *taken,
			 struct kymo_error *err)
{
	const struct trace *trace = out->trace;
	const struct trace_process *from = &trace->processes.list[out->from[number]];
	struct writer_process *process = &out->processes[number];
	int rc = writer_process_begin(out->writer, process, choose_pid(taken, &from->pid),
				      taken->count, err);

	process->control.rank = trace->rank;
	process->control.ranks = trace->ranks;
	snprintf(process->control.program, sizeof(process->control.program), "%s",
		 from->name[0] ? from->name : "imported");
	snprintf(process->control.argv, sizeof(process->control.argv) - 1, "%s", trace->path);
	return rc;
}

static int begin_processes(struct trace_out *out, struct import_pids *taken, struct kymo_error *err)
{
	struct trace *trace = out->trace;
	size_t most;
	int rc = 0;

	if (!trace->processes.count && trace_owner(trace, 1) == TRACE_NONE)
		return error_set(err, ENOMEM, "no memory for a trace");
	most = trace->processes.count < PROCESSES_MOST ? trace->processes.count : PROCESSES_MOST;
	out->processes = calloc(most, sizeof(*out->processes));
	out->from = calloc(most, sizeof(*out->from));
	out->lane_counts = calloc(most, sizeof(*out->lane_counts));
	out->target = calloc(trace->processes.count, sizeof(*out->target));
	if (!out->processes || !out->from || !out->lane_counts || !out->target)
		return error_set(err, ENOMEM, "no memory for a trace");
	choose_targets(out);
	for (uint32_t i = 0; i < out->process_count; i++)
		out->processes[i].dir = -1;
	for (uint32_t i = 0; !rc && i < out->process_count; i++)
		rc = begin_process(out, i, taken, err);
	return rc;
}

/* ---- times and steps ----------------------------------------------------------------------- */

static void widen(int64_t *first, int64_t *last, int64_t start, int64_t end)
{
	if (start < *first)
		*first = start;
	if (end > *last)
		*last = end;
}

static void widen_own(const struct schema_device_op_row *row, int64_t *first, int64_t *last)
{
	if (row->flags & SCHEMA_DEVICE_QUEUED)
		widen(first, last, (int64_t)row->queued_ticks, (int64_t)row->queued_ticks);
	if (row->flags & SCHEMA_DEVICE_START)
		widen(first, last, (int64_t)row->start_ticks, (int64_t)row->start_ticks);
	if (row->flags & SCHEMA_DEVICE_END)
		widen(first, last, (int64_t)row->end_ticks, (int64_t)row->end_ticks);
}

static void widen_flight(const struct trace_flight *flight, int64_t *first, int64_t *last)
{
	widen(first, last, flight->created_ns, flight->created_ns);
	if (flight->flags & SCHEMA_COLLECTIVE_START)
		widen(first, last, flight->started_ns, flight->started_ns);
	if (flight->flags & SCHEMA_COLLECTIVE_END)
		widen(first, last, flight->ended_ns, flight->ended_ns);
}

static void set_span(struct trace_out *out)
{
	const struct trace *trace = out->trace;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < trace->zones.count; i++)
		widen(&first, &last, trace->zones.list[i].start_ns,
		      trace->zones.list[i].start_ns + (int64_t)trace->zones.list[i].dur_ns);
	for (size_t i = 0; i < trace->ops.count; i++)
		widen(&first, &last, trace->ops.list[i].start_ns,
		      trace->ops.list[i].start_ns + (int64_t)trace->ops.list[i].dur_ns);
	for (size_t i = 0; i < trace->marks.count; i++)
		widen(&first, &last, trace->marks.list[i].ts_ns, trace->marks.list[i].ts_ns);
	for (size_t i = 0; i < trace->counters.count; i++)
		widen(&first, &last, trace->counters.list[i].ts_ns, trace->counters.list[i].ts_ns);
	for (size_t i = 0; i < trace->memory.count; i++)
		widen(&first, &last, trace->memory.list[i].ts_ns, trace->memory.list[i].ts_ns);
	for (size_t i = 0; i < trace->own_ops.count; i++)
		widen_own(&trace->own_ops.list[i].row, &first, &last);
	for (size_t i = 0; i < trace->steps.count; i++)
		widen(&first, &last, trace->steps.list[i].start_ns,
		      trace->steps.list[i].start_ns + (int64_t)trace->steps.list[i].dur_ns);
	for (size_t i = 0; i < trace->flights.count; i++)
		widen_flight(&trace->flights.list[i], &first, &last);
	for (size_t i = 0; i < trace->samples.count; i++)
		widen(&first, &last, trace->samples.list[i].ts_ns, trace->samples.list[i].ts_ns);
	if (trace->has_span)
		widen(&first, &last, trace->begins_ns, trace->ends_ns);
	if (trace->begins_at_base)
		widen(&first, &last, 0, 0);
	if (first > last)
		first = last = 0;
	for (uint32_t i = 0; i < out->process_count; i++) {
		out->processes[i].first_ns = trace_out_ns(out, first);
		out->processes[i].last_ns = trace_out_ns(out, last);
	}
}

static int compare_steps(const void *left, const void *right)
{
	const struct trace_step *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

uint32_t trace_out_step(const struct trace_out *out, int64_t ns)
{
	const struct trace_step *steps = out->trace->steps.list;
	size_t low = 0, high = out->trace->steps.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps[middle].start_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? steps[low - 1].number : 0;
}

static void write_steps(struct trace_out *out)
{
	for (size_t i = 0; i < out->trace->steps.count; i++) {
		const struct trace_step *step = &out->trace->steps.list[i];
		struct schema_step_row *row = writer_process_row(
			trace_out_process(out, step->track), SCHEMA_STEPS);

		row->start_ticks = trace_out_ticks(out, step->start_ns);
		row->duration_ticks = step->dur_ns;
		for (int phase = 0; phase < KYMO_PHASE_COUNT; phase++)
			row->phase_ticks[phase] = step->phase_ns[phase];
		row->step = step->number;
		row->name = step->name;
		/* Exports of kymo do not name the thread. */
		row->thread = out->lane_index && out->trace->tracks.list[step->track].lane
				      ? trace_write_thread_of(out, step->track)
				      : 0;
	}
}

/* All threads of an export of kymo are threads, also those without rows; other tracks of it have
   numbers above SAMPLED_TID. */
static void write_threads(struct trace_out *out)
{
	for (uint32_t i = 0; out->trace->begins_at_base && i < out->trace->tracks.count; i++) {
		const struct trace_track *track = &out->trace->tracks.list[i];

		if (track->name[0] && track->tid.is_number && track->tid.value < SAMPLED_TID)
			trace_out_lane(out, i, 0);
	}
}

/* ---- moments ------------------------------------------------------------------------------- */

static void write_points(struct trace_out *out)
{
	const struct trace *trace = out->trace;

	for (size_t i = 0; i < trace->marks.count; i++) {
		const struct trace_point *mark = &trace->marks.list[i];
		struct schema_mark_row *row = writer_process_row(
			trace_out_process(out, mark->track), SCHEMA_MARKS);

		row->ts_ticks = trace_out_ticks(out, mark->ts_ns);
		row->name = mark->name;
		row->thread = trace_write_thread_of(out, mark->track);
		row->step = mark->step ? mark->step - 1 : trace_out_step(out, mark->ts_ns);
	}
	for (size_t i = 0; i < trace->counters.count; i++) {
		const struct trace_point *counter = &trace->counters.list[i];
		struct schema_counter_row *row = writer_process_row(
			trace_out_process(out, counter->track), SCHEMA_COUNTERS);

		row->ts_ticks = trace_out_ticks(out, counter->ts_ns);
		row->value = counter->value;
		row->name = counter->name;
		row->thread = trace_write_thread_of(out, counter->track);
		row->step = counter->step ? counter->step - 1 : trace_out_step(out, counter->ts_ns);
	}
}

static uint32_t memory_device(struct trace_out *out, const struct trace_memory *memory)
{
	char text[64];

	if (memory->device_type == KINETO_CPU)
		return trace_name_text(out->trace, KYMO_SOURCE_DEVICE, "cpu");
	if (out->trace->rank >= 0 && out->trace->ranks > 1)
		snprintf(text, sizeof(text), "GPU %d of rank %d", (int)memory->device,
			 (int)out->trace->rank);
	else
		snprintf(text, sizeof(text), "GPU %d", (int)memory->device);
	return trace_name_text(out->trace, KYMO_SOURCE_DEVICE, text);
}

/* Old traces have no totals: those of a device are the sum of what the trace has seen. */
static void trace_write_write_memory(struct trace_out *out)
{
	const uint32_t pool = trace_name_text(out->trace, KYMO_SOURCE_DEVICE, "torch");
	int64_t sums[64] = { 0 };

	for (size_t i = 0; i < out->trace->memory.count; i++) {
		const struct trace_memory *memory = &out->trace->memory.list[i];
		int64_t *sum =
			&sums[memory->device_type == KINETO_CPU ? 63 : (memory->device & 31)];
		struct schema_device_memory_row *row;

		__builtin_add_overflow(*sum, memory->bytes, sum);
		row = writer_process_row(trace_out_process(out, memory->track),
					 SCHEMA_DEVICE_MEMORY);
		row->ts_ticks = trace_out_ticks(out, memory->ts_ns);
		row->bytes = memory->bytes;
		row->live_bytes = memory->total_bytes >= 0 ? memory->total_bytes : *sum;
		row->device = memory_device(out, memory);
		row->kind = pool;
		row->thread = trace_write_thread_of(out, memory->track);
		row->step = trace_out_step(out, memory->ts_ns);
	}
}

/* ---- accounts ------------------------------------------------------------------------------ */

static const struct {
	const char *text;
	bool kept;
} outcomes[] = {
#define X(upper, text, kept) { text, kept },
	TRACE_OUTCOMES(X)
#undef X
};

static void write_account(struct trace_out *out, const struct trace_category *category, int phase,
			  int outcome, uint64_t events, uint32_t file)
{
	struct schema_import_row *row = writer_process_row(&out->processes[out->main],
							   SCHEMA_IMPORTS);

	row->events = events;
	row->file = file;
	row->category = category->name;
	row->became = trace_name_text(out->trace, KYMO_SOURCE_C, outcomes[outcome].text);
	row->phase = (uint16_t)phase;
	row->kept = outcomes[outcome].kept;
}

static void write_accounts(struct trace_out *out, struct import_result *result)
{
	const struct trace *trace = out->trace;
	const uint32_t file = trace_name_text(out->trace, KYMO_SOURCE_C, trace->path);

	for (size_t i = 0; i < trace->categories.count; i++)
		for (int phase = 0; phase < 128; phase++)
			for (int outcome = 0; outcome < TRACE_OUTCOME_COUNT; outcome++) {
				const struct trace_category *category = &trace->categories.list[i];
				uint64_t events = category->outcomes[phase][outcome];

				if (!events)
					continue;
				write_account(out, category, phase, outcome, events, file);
				result->rows += outcomes[outcome].kept ? events : 0;
				result->skipped += outcome >= TRACE_NO_TIME ? events : 0;
			}
	result->events += trace->events;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* The threads of all processes, one process after another; entry 0 of each is not used. */
static struct kymo_thread_entry *trace_write_list_threads(const struct trace_out *out,
							  size_t *firsts)
{
	struct kymo_thread_entry *threads;
	size_t count = 0;

	for (size_t i = 0; i < out->process_count; i++) {
		firsts[i] = count;
		count += out->lane_counts[i] + 1;
	}
	threads = calloc(count, sizeof(*threads));
	for (size_t i = 1; threads && i < out->lanes.count; i++) {
		const struct trace_lane *lane = &out->lanes.list[i];
		struct kymo_thread_entry *thread =
			&threads[firsts[lane->process] + out->lane_index[i]];

		thread->ready = 1;
		thread->tid = lane->tid;
		thread->started_ticks = writer_ticks(out->processes[lane->process].first_ns);
		memcpy(thread->name, lane->name, sizeof(lane->name));
	}
	return threads;
}

static int end_processes(struct trace_out *out, struct import_result *result,
			 struct kymo_error *err)
{
	const struct trace *trace = out->trace;
	struct writer_name *names = calloc(trace->names.count, sizeof(*names));
	size_t *firsts = calloc(out->process_count, sizeof(*firsts));
	struct kymo_thread_entry *threads = firsts ? trace_write_list_threads(out, firsts) : NULL;
	int rc = names && threads ? 0 : error_set(err, ENOMEM, "no memory for a trace");

	for (size_t i = 0; !rc && i < trace->names.count; i++)
		names[i] = trace->names.list[i].name;
	for (uint32_t i = 0; !rc && i < out->process_count; i++) {
		out->processes[i].control.names_full = trace->names_full;
		rc = writer_process_end(out->writer, &out->processes[i], names, trace->names.count,
					threads + firsts[i], out->lane_counts[i] + 1, err);
		result->processes++;
	}
	free(threads);
	free(firsts);
	free(names);
	return rc;
}

static void out_fini(struct trace_out *out)
{
	for (size_t i = 0; out->processes && i < out->process_count; i++)
		writer_process_discard(&out->processes[i]);
	free(out->processes);
	free(out->target);
	free(out->from);
	free(out->lane_counts);
	free(out->order);
	free(out->lanes.list);
	free(out->lane_index);
	free(out->launches);
	free(out->launch_slots);
	free(out->modules);
}

int trace_write(struct trace *trace, struct recording_writer *writer, struct import_pids *taken,
		struct kymo_error *err)
{
	struct trace_out out = { .trace = trace, .writer = writer };
	int rc;

	trace_close_open(trace);
	trace_name_queues(trace);
	out.knows_pairs = trace->ranks > 0 && (size_t)trace->ranks == taken->files;
	rc = begin_processes(&out, taken, err);
	if (rc)
		goto out;
	set_span(&out);
	if (trace->steps.count)
		qsort(trace->steps.list, trace->steps.count, sizeof(*trace->steps.list),
		      compare_steps);
	if (trace_out_add_launches(&out) || trace_out_zones(&out) || trace_out_links(&out)) {
		rc = error_set(err, ENOMEM, "no memory for the zones of a trace");
		goto out;
	}
	write_threads(&out);
	trace_out_ops(&out);
	write_steps(&out);
	write_points(&out);
	trace_write_write_memory(&out);
	if (trace_out_samples(&out)) {
		rc = error_set(err, ENOMEM, "no memory for the samples of a trace");
		goto out;
	}
	if (trace_out_collectives(&out)) {
		rc = error_set(err, ENOMEM, "no memory for the collectives of a trace");
		goto out;
	}
	trace_out_flights(&out);
	write_accounts(&out, taken->result);
	rc = end_processes(&out, taken->result, err);
out:
	out_fini(&out);
	return rc;
}
