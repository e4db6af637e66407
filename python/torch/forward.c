/* Forward: replaces the C entry of the function object nn.Module.__call__ while modules are
   recorded. */
#include <kymo/atomic.h>

#include "torch.h"

static PyFunctionObject *function; /* held while hooked */
static vectorcallfunc original;

static void forward_begin(struct thread *thread, struct frame *frame, PyObject *module)
{
	struct frame *parent = thread->frame;
	struct record *record;
	uint64_t now;

	frame->recomputed = thread->backwards > 0;
	if (parent)
		frame->entry = names_find(module, parent->entry, parent->module);
	else
		frame->entry = frame->recomputed ? names_first(module) : NULL;
	if (!frame->entry)
		frame->entry = names_find(module, NULL, NULL);
	frame->parent = parent;
	frame->module = module;
	frame->child_ticks = 0;
	frame->depth = parent ? (uint16_t)(parent->depth + 1) : 0;
	frame->step = parent ? parent->step : steps_now();
	frame->position = thread->head;
	record = &thread->ring[thread->head % RING_RECORDS];
	record->s0 = symbols.peek ? symbols.peek() : 0;
	record->s1 = UINT64_MAX;
	record->entry = frame->entry;
	record->parent = thread->current;
	/* Pairs with the acquire of find_record() in backward.c. */
	kymo__store_release(&thread->head, thread->head + 1);
	thread->current = thread->head;
	frame->zone = frame->entry->selected ? kymo_zone_begin_id(frame->entry->name)
					     : (struct kymo_zone){ 0 };
	now = frame->zone.lane ? frame->zone.start_ticks : kymo__ticks();
	frame->start = now;
	frame->span.begin.event = NULL;
	if (KYMO__UNLIKELY(accelerator_is_ready()) && frame->entry->selected)
		accelerator_begin(&frame->span, now);
	thread->frame = frame;
}

/* Recomputed inside modules whose backward is open: placed below those. */
static void end_span(const struct thread *thread, struct frame *frame)
{
	const struct span_of of = {
		.entry = frame->entry,
		.depth = frame->depth +
			 (frame->recomputed ? (uint32_t)(thread->top - thread->base) + 1 : 0),
		.root = !frame->parent && !frame->recomputed,
	};

	accelerator_end(&frame->span, &of);
}

/* Whether autograd nodes were created in it. If not, the record is never looked up and is
   removed. */
static bool end_record(struct thread *thread, const struct frame *frame)
{
	struct record *record = &thread->ring[frame->position % RING_RECORDS];
	uint64_t s1 = symbols.peek ? symbols.peek() : 0;
	bool overwritten = thread->head - frame->position > RING_RECORDS;

	if (overwritten)
		return true;
	thread->current = record->parent;
	if (record->s0 == s1 && thread->head == frame->position + 1) {
		kymo__store_release(&thread->head, frame->position);
		return false;
	}
	kymo__store_release(&record->s1, s1);
	return true;
}

static void end_root(struct thread *thread, uint64_t now, bool made_graph, int phase_before)
{
	thread->current = 0;
	steps_phase(thread, phase_before, now);
	if (made_graph)
		steps_training_began();
	if (!state.trains)
		steps_inference_ended(thread);
	if (!state.trains && watch_any())
		watch_sample();
	trial_look();
}

static void forward_end(struct thread *thread, struct frame *frame, bool raised, int phase_before)
{
	uint64_t now = kymo__ticks();
	bool made_graph = end_record(thread, frame);
	struct row row = { .entry = frame->entry,
			   .stage = STAGE_FORWARD,
			   .start = frame->start,
			   .end = now,
			   .child_ticks = frame->child_ticks,
			   .step = frame->step,
			   .depth = frame->depth };

	steps_zone_end(&frame->zone, now, frame->recomputed ? KYMO_ZONE_RECOMPUTED : 0);
	if (KYMO__UNLIKELY(frame->span.begin.event != NULL))
		end_span(thread, frame);
	row.flags = (frame->recomputed ? SCHEMA_TORCH_RECOMPUTED : 0) |
		    (raised && !frame->recomputed ? SCHEMA_TORCH_RAISED
						  : 0); /* a checkpoint stops early by raising */
	if (frame->entry->selected)
		steps_write(&row);
	thread->frame = frame->parent;
	if (frame->parent)
		frame->parent->child_ticks += frame->entry->selected ? now - frame->start
								     : frame->child_ticks;
	else if (!frame->recomputed)
		end_root(thread, now, made_graph, phase_before);
}

static PyObject *call_recorded(struct thread *thread, PyObject *callable, PyObject *const *args,
			       size_t count, PyObject *keywords)
{
	int phase_before = thread->phase;
	struct frame frame;
	PyObject *result;

	forward_begin(thread, &frame, args[0]);
	if (!frame.parent && !frame.recomputed)
		steps_phase(thread, KYMO_PHASE_FORWARD, frame.start);
	result = original(callable, args, count, keywords);
	forward_end(thread, &frame, !result, phase_before);
	if (KYMO__UNLIKELY(!state.cost_known && !frame.parent && !frame.recomputed))
		cost_measure(thread, args[0]);
	return result;
}

uint64_t forward_cost(struct thread *thread, PyObject *module, int times)
{
	uint64_t start = kymo__ticks();
	struct frame frame;

	thread->backwards++; /* like repeated forwards: these are neither steps nor phases */
	for (int i = 0; i < times; i++) {
		forward_begin(thread, &frame, module);
		forward_end(thread, &frame, false, -1);
	}
	thread->backwards--;
	return kymo__ticks() - start;
}

/* A root's forward in a step that is not recorded: modules below it are skipped, the phase is
   recorded. */
static PyObject *call_skipped(struct thread *thread, PyObject *callable, PyObject *const *args,
			      size_t count, PyObject *keywords)
{
	uint64_t s0 = symbols.peek ? symbols.peek() : 0;
	int phase_before = thread->phase;
	PyObject *result;

	thread->skipping = true;
	if (!thread->backwards)
		steps_phase(thread, KYMO_PHASE_FORWARD, kymo__ticks());
	result = original(callable, args, count, keywords);
	thread->skipping = false;
	if (!thread->backwards)
		end_root(thread, kymo__ticks(), symbols.peek && symbols.peek() != s0, phase_before);
	return result;
}

static PyObject *torch_forward_hook(PyObject *callable, PyObject *const *args, size_t count,
				    PyObject *keywords)
{
	bool on = torch_is_on(), wanted = true;
	struct thread *thread;

	if (KYMO__UNLIKELY(on != state.callback_on && state.callback_added)) {
		backward_callback(on);
		ops_look();
	}
	if (!on || !PyVectorcall_NARGS(count))
		return original(callable, args, count, keywords);
	thread = thread_get();
	if (!thread || thread->skipping)
		return original(callable, args, count, keywords);
	if (KYMO__UNLIKELY(accelerator_is_there) && !thread->frame)
		accelerator_look();
	if (!thread->frame) {
		wanted = steps_wanted();
		ops_look();
	}
	if (!wanted)
		return call_skipped(thread, callable, args, count, keywords);
	return call_recorded(thread, callable, args, count, keywords);
}

static void set_entry(vectorcallfunc entry)
{
#if PY_VERSION_HEX >= 0x030C0000
	PyFunction_SetVectorcall(function,
				 entry); /* also drops specialisations for the old entry */
#else
	function->vectorcall = entry;
#endif
}

int forward_hook(PyObject *callable)
{
	if (function)
		return 0;
	if (!PyFunction_Check(callable))
		return -1;
	Py_INCREF(callable);
	function = (PyFunctionObject *)callable;
	original = function->vectorcall;
	set_entry(torch_forward_hook);
	return 0;
}

void forward_unhook(void)
{
	PyFunctionObject *was = function;

	/* If another tool has replaced it after us, ours only forwards calls. */
	if (!was || was->vectorcall != torch_forward_hook)
		return;
	set_entry(original);
	function = NULL;
	Py_DECREF(was);
}

bool forward_is_hooked(void)
{
	return function != NULL;
}
