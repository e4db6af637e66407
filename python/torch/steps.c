/* Steps, phases and rows. */
#include <string.h>

#include <kymo/atomic.h>

#include "../core/poll.h"
#include "torch.h"

struct state state;

/* ---- settings ---- */

static void look_again(const struct kymo_control *control)
{
	char modules[sizeof(control->torch_modules) + 1] = "",
						      watch[sizeof(control->watch) + 1] = "";

	memcpy(modules, control->torch_modules, sizeof(control->torch_modules));
	memcpy(watch, control->watch, sizeof(control->watch));
	state.settings.every = control->torch_every;
	state.settings.ops = control->torch_ops;
	names_select(modules);
	watch_set(watch);
}

bool steps_wanted(void)
{
	const struct kymo_control *control = kymo__control();
	uint64_t changes;

	if (!control)
		return false;
	changes = kymo__load_acquire(&control->config_changes);
	/* Odd: a write is in progress; read it next time (base/settings.h). */
	if (KYMO__UNLIKELY((!state.settings.seen || changes != state.settings.changes) &&
			   !(changes & 1))) {
		look_again(control);
		state.settings.changes = changes;
		state.settings.seen = true;
		kymo__poll_promised();
		poll_program();
	}
	return state.settings.every < 2 || steps_now() % state.settings.every == 0 ||
	       ops_wanted(steps_now());
}

uint32_t steps_now(void)
{
	if (kymo__marked_by_user() & KYMO__MARKED_STEPS)
		return kymo_current_step();
	return kymo__load_relaxed(&state.step);
}

/* ---- rows ---- */

_Thread_local bool steps_aside;

/* seq counts the rows of a step; the first row of a new step resets it. */
static uint32_t next_sequence(uint32_t step)
{
	/* step in the upper bits, count in the lower; the second is for rows of the cost lane */
	static uint64_t counters[2];
	uint64_t *counter = &counters[steps_aside];
	uint64_t now = kymo__load_relaxed(counter), next;

	do
		next = now >> 32 == step ? now + 1 : (uint64_t)step << 32 | 1;
	while (!kymo__cas_weak_relaxed(counter, &now, next));
	return (uint32_t)next - 1;
}

/* (device, allocated, peak, reserved) in one call. Saves and restores the program's exception. */
static void read_memory(struct schema_torch_row *row)
{
	PyObject *kind, *value, *trace, *answer;
	long long device, allocated, peak, reserved;

	PyErr_Fetch(&kind, &value, &trace);
	answer = PyObject_CallNoArgs(state.memory);
	if (answer && PyTuple_Check(answer) &&
	    PyArg_ParseTuple(answer, "LLLL", &device, &allocated, &peak, &reserved)) {
		row->device = (int32_t)device;
		row->allocated_bytes = allocated;
		row->peak_bytes = peak;
		row->reserved_bytes = reserved;
	}
	Py_XDECREF(answer);
	PyErr_Restore(kind, value, trace);
}

static void read_memory_from_anywhere(struct schema_torch_row *row)
{
	PyGILState_STATE held;

	if (!Py_IsInitialized())
		return;
	held = PyGILState_Ensure();
	if (state.memory)
		read_memory(row);
	PyGILState_Release(held);
}

void steps_write(const struct row *in)
{
	struct schema_torch_row row = { .start_ticks = in->start,
					.duration_ticks = in->end - in->start,
					.child_ticks = in->child_ticks,
					.module = in->entry->name,
					.model = in->entry->model,
					.step = in->step,
					.stage = (uint16_t)in->stage,
					.depth = in->depth,
					.flags = in->flags,
					.device = -1 };

	row.sequence = next_sequence(in->step);
	if (KYMO__UNLIKELY(state.memory != NULL) && !steps_aside)
		read_memory_from_anywhere(&row);
	kymo__fetch_add_relaxed(&state.rows[steps_aside ? STAGE_COUNT : in->stage], 1);
	kymo__append(SCHEMA_TORCH, &row);
}

/*
 * Began inside a call that has ended since: torch opens its scopes in Python functions, and where
 * calls are recorded, the zone closes with them. A row of it would cross the rows of those calls,
 * which cover the same time.
 */
static bool is_gone(const struct kymo_open_stack *open, const struct kymo_zone *zone)
{
	return zone->depth < KYMO_OPEN_MAX &&
	       (open->depth <= zone->depth ||
		open->entries[zone->depth].start_ticks != zone->start_ticks);
}

void steps_zone_end(const struct kymo_zone *zone, uint64_t end, uint32_t flags)
{
	struct kymo__lane *lane = kymo__lane;

	if (!zone->lane)
		return;
	if (lane != zone->lane) { /* in the child of a fork */
		kymo__zone_close(zone);
		return;
	}
	if (is_gone(lane->open, zone))
		return;
	kymo__zone_leave(lane, zone->depth);
	kymo__zone_write(lane, zone, end, zone->depth, flags);
}

/* ---- phases and steps ---- */

/* The program's first step, in any thread; later steps begin where the previous one ends. */
static void first_step_began(void)
{
	static uint32_t began;

	if (!(kymo__marked_by_user() & KYMO__MARKED_STEPS) && !kymo__exchange_relaxed(&began, 1))
		kymo__moment(KYMO__STEP_BEGAN, "step");
}

void steps_phase(struct thread *thread, int phase, uint64_t now)
{
	uint64_t ticks = now - thread->phase_since;

	if (!thread->step_start) {
		thread->step_start = now;
		first_step_began();
	}
	if (thread->phase >= 0) {
		thread->phase_ticks[thread->phase] += ticks;
		if (kymo__marked_by_user() ==
		    KYMO__MARKED_STEPS) /* the program marks its own steps, but no phases */
			kymo__add_phase((enum kymo_phase)thread->phase, ticks);
	}
	thread->phase = phase;
	thread->phase_since = now;
}

static void end_step(struct thread *thread, uint32_t name, uint64_t now)
{
	struct schema_step_row row = { .start_ticks = thread->step_start,
				       .duration_ticks = now - thread->step_start,
				       .step = state.step,
				       .name = name };
	struct kymo_control *control = kymo__control();

	memcpy(row.phase_ticks, thread->phase_ticks, sizeof(row.phase_ticks));
	memset(thread->phase_ticks, 0, sizeof(thread->phase_ticks));
	thread->step_start = now;
	kymo__fetch_add_relaxed(&state.step, 1);
	ops_look();
	if (kymo__marked_by_user() & KYMO__MARKED_STEPS)
		return;
	kymo__append(SCHEMA_STEPS, &row);
	if (control)
		kymo__store_relaxed(&control->step, state.step);
	kymo__moment(KYMO__STEP_BEGAN, "step");
}

void steps_optimizer_ended(struct thread *thread, uint64_t now)
{
	steps_phase(thread, thread->phase, now);
	end_step(thread, kymo_name("step"), now);
}

/* ---- without training ---- */

static void forget_step(struct thread *thread)
{
	thread->step_start = 0;
	memset(thread->phase_ticks, 0, sizeof(thread->phase_ticks));
}

void steps_training_began(void)
{
	if (state.trains)
		return;
	state.trains = true;
	kymo__store_relaxed(&state.step, 0); /* counted forwards or batches so far */
}

/*
 * Only a loop has steps. One that evaluates a model over a data loader has a step for each batch.
 * Forwards of a server have none: the time between two of them is that between two requests, and
 * says nothing about the model.
 */
void steps_inference_ended(struct thread *thread)
{
	if (thread->loading) {
		thread->evaluated = true;
		return;
	}
	forget_step(thread);
	kymo__fetch_add_relaxed(&state.step, 1);
	ops_look();
}

void steps_batch_wanted(struct thread *thread, uint64_t now)
{
	if (state.trains)
		return;
	if (thread->loading && thread->evaluated) {
		steps_phase(thread, thread->phase, now);
		end_step(thread, kymo_name("inference"), now);
	} else if (!thread->loading) {
		forget_step(thread);
	}
	thread->loading = true;
	thread->evaluated = false;
}

void steps_batches_ended(struct thread *thread)
{
	thread->loading = false;
	if (!state.trains)
		forget_step(thread);
}
