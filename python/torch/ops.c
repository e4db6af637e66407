/*
 * The callback for operators. It is enabled for whole steps, one in so many, and disabled between
 * them: then it costs nothing. torch boxes the inputs of each operator for it, which costs more
 * than all that is done here. Called without the GIL, in any thread.
 */
#include <stdlib.h>
#include <string.h>

#include <kymo/atomic.h>

#include "record/adapter.h"

#include "ops.h"

#define SCOPE_FUNCTION 0
#define NEEDS_INPUTS 10 /* after the scopes */

static struct {
	bool added, on, fitting;
	uint64_t handle;
	uint32_t window; /* counts windows */
	uint32_t step; /* the step that is recorded, unless all are */
	uint64_t rows;
} ops;

static struct op_thread *op_thread_of(struct thread *thread)
{
	if (!thread->ops)
		thread->ops = calloc(1, sizeof(*thread->ops));
	return thread->ops;
}

/* ---- an operator ---- */

/* The module whose forward or backward runs, and the part of the step. */
static void place_op(const struct thread *thread, struct op_open *op)
{
	op->entry = NULL;
	op->flags = 0;
	op->stage = SCHEMA_TORCH_OTHER;
	if (thread->frame) {
		op->entry = thread->frame->entry;
		op->stage = SCHEMA_TORCH_FORWARD;
		op->flags = thread->frame->recomputed ? SCHEMA_TORCH_OP_RECOMPUTED : 0;
	} else if (thread->top > thread->base) {
		op->entry = thread->nodes[thread->top - 1].entry;
		op->stage = SCHEMA_TORCH_BACKWARD;
	} else if (thread->backwards) {
		op->stage = SCHEMA_TORCH_BACKWARD;
	} else if (thread->steps_open) {
		op->stage = SCHEMA_TORCH_STEP;
	} else if (thread->phase == KYMO_PHASE_FORWARD) {
		op->stage = SCHEMA_TORCH_FORWARD;
	}
}

static bool is_in_window(uint32_t step)
{
	return state.settings.ops == 1 || step == kymo__load_relaxed(&ops.step);
}

/* The inputs are valid now only. They are read before the zone begins, so that its time is the
   operator's. */
static void op_begin(struct thread *thread, struct op_thread *own, const void *function,
		     uint32_t step)
{
	const struct op_name *name = op_name_of(own, symbols.name(function));
	struct op_inputs inputs;
	const struct op_shape *shape;
	struct op_open *op;

	if (name->skipped || own->count == OPS_MOST)
		return;
	inputs = op_inputs_of(function);
	shape = op_shape_of(own, name, &inputs);
	op = &own->open[own->count];
	op->function = function;
	place_op(thread, op);
	op->counted = own->count && own->open[own->count - 1].counted;
	op->flops = 0;
	if (shape->counted && !op->counted) {
		op->flops = shape->flops;
		op->counted = true;
		op->flags |= SCHEMA_TORCH_OP_COUNTED;
	}
	op->name = name->id;
	op->step = step;
	op->shapes = shape->shapes;
	op->dtypes = shape->dtypes;
	memcpy(&op->sequence, (const char *)function + symbols.sequence_offset,
	       sizeof(op->sequence));
	own->count++;
	op->zone = kymo_zone_begin_id(name->id);
}

static void *op_start(void **out_context, const void *function)
{
	struct thread *thread;
	struct op_thread *own;
	uint32_t step;

	*out_context = NULL;
	if (KYMO__UNLIKELY(ops.fitting)) {
		op_inputs_see(function, symbols.name(function));
		return out_context;
	}
	step = steps_now();
	thread = torch_is_on() && is_in_window(step) ? thread_get() : NULL;
	own = thread ? op_thread_of(thread) : NULL;
	if (!own)
		return out_context;
	if (KYMO__UNLIKELY(own->window != ops.window)) {
		own->window = ops.window;
		own->count = 0; /* operators that ended on another thread */
	}
	op_begin(thread, own, function, step);
	return out_context;
}

static void op_write(const struct op_open *op, int depth)
{
	uint64_t end = kymo__ticks();
	struct schema_torch_op_row row = { .start_ticks = op->zone.start_ticks,
					   .duration_ticks = end - op->zone.start_ticks,
					   .flops = op->flops,
					   .sequence = op->sequence,
					   .name = op->name,
					   .module = op->entry ? op->entry->name : 0,
					   .model = op->entry ? op->entry->model : 0,
					   .shapes = op->shapes,
					   .dtypes = op->dtypes,
					   .step = op->step,
					   .kind = (uint16_t)(op->stage | op->flags),
					   .depth = (uint16_t)depth };

	if (!op->zone.lane)
		return;
	steps_zone_end(&op->zone, end, 0);
	kymo__append(SCHEMA_TORCH_OPS, &row);
	kymo__fetch_add_relaxed(&ops.rows, !steps_aside);
}

/* Operators end in order. One that ends on another thread stays open there until the one around it
   ends, and has no row. */
static void op_end(const void *function, void *context)
{
	struct thread *thread = ops.fitting ? NULL : thread_get();
	struct op_thread *own = thread ? thread->ops : NULL;
	int at = own ? own->count - 1 : -1;

	(void)context;
	while (at >= 0 && own->open[at].function != function)
		at--;
	if (at < 0)
		return;
	own->count = at;
	op_write(&own->open[at], at);
}

uint64_t ops_rows(void)
{
	return kymo__load_relaxed(&ops.rows);
}

/* ---- windows ---- */

void ops_add(void)
{
	struct callback callback = { .start = op_start, .end = op_end, .sampling = 1.0 };

	if (ops.added || !symbols.complete || !symbols.name)
		return;
	callback.scopes[SCOPE_FUNCTION] = 1;
	callback.scopes[SCOPE_BACKWARD_FUNCTION] = 1;
	callback.scopes[NEEDS_INPUTS] = 1;
	ops.handle = symbols.add_callback(callback);
	symbols.disable_callback(ops.handle);
	ops.added = true;
}

static void ops_set(bool on)
{
	if (on == ops.on || !ops.added)
		return;
	ops.window += on;
	ops.on = on;
	(on ? symbols.reenable_callback : symbols.disable_callback)(ops.handle);
}

void ops_look_for_layout(bool on)
{
	ops.fitting = on;
	ops_set(on);
}

/* The second of so many steps: the first one also prepares much that later ones have. */
bool ops_wanted(uint32_t step)
{
	uint32_t every = state.settings.ops;

	return op_layout_known && (every == 1 || (every && step % every == 1));
}

void ops_look(void)
{
	uint32_t step = steps_now();
	bool on = torch_is_on() && ops_wanted(step);

	if (on)
		kymo__store_relaxed(&ops.step, step);
	if (KYMO__UNLIKELY(on != ops.on) && !ops.fitting)
		ops_set(on);
}

void ops_close(void)
{
	ops_set(false);
}

bool ops_are_on(void)
{
	return ops.on;
}

/* ---- cost ---- */

static uint64_t op_time_of(PyObject *act)
{
	uint64_t start = kymo__ticks();
	PyObject *result = PyObject_CallNoArgs(act);
	uint64_t ticks = kymo__ticks() - start;

	PyErr_Clear();
	Py_XDECREF(result);
	return ticks;
}

#define COST_ROUNDS 5

void ops_cost(PyObject *act, uint32_t count)
{
	uint32_t every = state.settings.ops;
	uint64_t with = UINT64_MAX, without = UINT64_MAX;

	if (!op_layout_known || !torch_is_on())
		return;
	state.settings.ops = 1;
	steps_aside = true;
	for (int round = 0; round < COST_ROUNDS; round++) {
		struct kymo__lane *lane = kymo__cost_lane_begin();
		uint64_t ticks;

		ops_set(true);
		ticks = op_time_of(act);
		ops_set(false);
		with = ticks < with ? ticks : with;
		ticks = op_time_of(act);
		without = ticks < without ? ticks : without;
		kymo__cost_lane_end(lane);
	}
	steps_aside = false;
	state.settings.ops = every;
	if (with > without && count)
		kymo__source_cost(KYMO_SOURCE_OP, (with - without) / count);
}
