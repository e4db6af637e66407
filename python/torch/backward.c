/*
 * Backward: at::RecordFunction reports every autograd node that runs (and scopes: scopes.c). A node
 * carries the sequence number it got in forward, and each module's forward records which numbers
 * were assigned during it: so a node is mapped to its module. Nothing is added to the graph, and no
 * tensor is read. Called without the GIL, also by threads of the engine.
 */
#include <stdlib.h>
#include <string.h>

#include <kymo/atomic.h>

#include "torch.h"

/* ---- the module of a node ---- */

/* Rings are read while their thread writes: a record that is being replaced gives a wrong module,
   never an invalid one. */
static const struct record *record_at(const struct thread *owner, uint64_t position, uint64_t head)
{
	if (position >= head || head - position > RING_RECORDS)
		return NULL;
	return &owner->ring[position % RING_RECORDS];
}

/* Position + 1 of the last record that began at or before that number; 0: none. Records are sorted
   by it. */
static uint64_t last_begun(const struct thread *owner, uint64_t number, uint64_t head)
{
	uint64_t low = head > RING_RECORDS ? head - RING_RECORDS : 0, high = head;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (owner->ring[middle % RING_RECORDS].s0 <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool backward_holds(uint64_t s0, uint64_t s1, uint64_t number)
{
	return s0 <= number && number < s1;
}

/* Position + 1 of the innermost forward that created the node. */
static uint64_t find_record(const struct thread *owner, uint64_t number, uint64_t head)
{
	uint64_t at = last_begun(owner, number, head);
	const struct record *record;

	for (int turns = 0; at && turns < 4096; turns++) {
		record = record_at(owner, at - 1, head);
		if (!record)
			return 0;
		if (backward_holds(record->s0, kymo__load_acquire(&record->s1), number))
			return at;
		at = record->parent < at ? record->parent : 0;
	}
	return 0;
}

/* ---- open modules ---- */

static void backward_pop(struct thread *thread)
{
	struct node *node = &thread->nodes[--thread->top];
	uint64_t ticks = thread->last_end - node->start;
	struct row row = { .entry = node->entry,
			   .stage = STAGE_BACKWARD,
			   .start = node->start,
			   .end = thread->last_end,
			   .child_ticks = node->child_ticks,
			   .step = node->step,
			   .depth = node->depth };

	if (node->span.begin.event)
		accelerator_end_at(&node->span, &thread->last_stamp,
				   &(struct span_of){ .entry = node->entry, .depth = node->depth });
	if (node->entry->selected)
		steps_write(&row);
	if (!node->entry->selected)
		ticks = node->child_ticks;
	if (thread->top > thread->base)
		thread->nodes[thread->top - 1].child_ticks += ticks;
	else
		thread->call_child_ticks += ticks;
}

static void backward_push(struct thread *thread, const struct record *record, uint64_t owner,
			  uint64_t now)
{
	struct node *node = &thread->nodes[thread->top];

	if (thread->top == NODES_MAX)
		return;
	*node = (struct node){ .entry = record->entry,
			       .owner = owner,
			       .s0 = record->s0,
			       .s1 = record->s1,
			       .start = now,
			       .step = steps_now(),
			       .depth = (uint16_t)(thread->top - thread->base + 1) };
	if (KYMO__UNLIKELY(accelerator_is_ready()) && record->entry->selected) {
		thread->timed = true;
		accelerator_begin(&node->span, now);
	}
	thread->top++;
}

/* Opens the module at that position, after those of its ancestors that are not open. */
static void open_modules(struct thread *thread, const struct thread *owner, uint64_t at,
			 uint64_t head, uint64_t now)
{
	const struct record *chain[NODES_MAX], *record;
	const struct node *top = thread->top > thread->base ? &thread->nodes[thread->top - 1]
							    : NULL;
	uint64_t id = owner->torch_id;
	int count = 0;

	while (at && count < NODES_MAX && (record = record_at(owner, at - 1, head))) {
		if (top && top->owner == id && top->entry == record->entry && top->s0 == record->s0)
			break;
		chain[count++] = record;
		at = record->parent < at ? record->parent : 0;
	}
	while (count > 0)
		backward_push(thread, chain[--count], id, now);
}

static struct thread *backward_owner_of(struct thread *thread, uint64_t id)
{
	if (thread->torch_id == id)
		return thread;
	if (!thread->last_owner || thread->last_owner->torch_id != id)
		thread->last_owner = thread_of(id);
	return thread->last_owner;
}

static void node_began(struct thread *thread, uint64_t number, uint64_t owner_id)
{
	uint64_t now = kymo__ticks(), head, at;
	struct thread *owner;

	while (thread->top > thread->base) {
		const struct node *top = &thread->nodes[thread->top - 1];

		if (top->owner == owner_id && backward_holds(top->s0, top->s1, number))
			break;
		backward_pop(thread);
	}
	owner = backward_owner_of(thread, owner_id);
	if (!owner)
		return;
	head = kymo__load_acquire(&owner->head);
	at = find_record(owner, number, head);
	if (at)
		open_modules(thread, owner, at, head, now);
}

/* ---- finding the offsets of the numbers ---- */

/* While it is on: the words of every node's RecordFunction that may be the expected number. */
#define SCAN_WORDS 64

static struct {
	bool on;
	uint64_t from, to, thread;
	uint8_t number_misses[SCAN_WORDS], thread_misses[SCAN_WORDS];
	uint32_t nodes;
} scan;

void backward_calibrate_begin(void)
{
	memset(&scan, 0, sizeof(scan));
	scan.on = true;
}

void backward_calibrate_expect(uint64_t from, uint64_t to, uint64_t thread)
{
	scan.from = from;
	scan.to = to;
	scan.thread = thread;
}

/* A word that was wrong for any node is ruled out. AccumulateGrad has no number (-1); such nodes
   are skipped by checking only nodes with some word in the range. */
static void scan_node(const void *function)
{
	const uint64_t *words = function;
	bool any = false;

	for (int i = 0; i < SCAN_WORDS; i++)
		any = any || (words[i] >= scan.from && words[i] < scan.to);
	if (!any)
		return;
	for (int i = 0; i < SCAN_WORDS; i++) {
		scan.number_misses[i] |= words[i] < scan.from || words[i] >= scan.to;
		scan.thread_misses[i] |= words[i] != scan.thread;
	}
	scan.nodes++;
}

static int only_one(const uint8_t *misses)
{
	int found = 0;

	for (int i = 1; i < SCAN_WORDS; i++)
		if (!misses[i]) {
			if (found)
				return 0;
			found = i;
		}
	return found * 8;
}

int backward_calibrate_end(uint32_t *out_sequence, uint32_t *out_thread)
{
	scan.on = false;
	*out_sequence = (uint32_t)only_one(scan.number_misses);
	*out_thread = (uint32_t)only_one(scan.thread_misses);
	return scan.nodes >= 8 && *out_sequence && *out_thread ? 0 : -1;
}

/* ---- callbacks from torch ---- */

static int64_t backward_word_at(const void *function, uint32_t offset)
{
	int64_t word;

	memcpy(&word, (const char *)function + offset, sizeof(word));
	return word;
}

static void node_began_holding(struct thread *thread, uint64_t number, uint64_t owner)
{
	PyGILState_STATE held;

	if (!Py_IsInitialized())
		return;
	held = PyGILState_Ensure();
	node_began(thread, number, owner);
	PyGILState_Release(held);
}

/* Returns std::unique_ptr<ObserverContext>, an empty one: through the hidden first argument, as the
   C++ ABI requires. */
static void *node_start(void **out_context, const void *function)
{
	struct thread *thread;
	int64_t number;

	*out_context = NULL;
	if (scan.on) {
		scan_node(function);
		return out_context;
	}
	thread = symbols.sequence_offset && torch_is_on() ? thread_get() : NULL;
	if (!thread)
		return out_context;
	number = backward_word_at(function, symbols.sequence_offset);
	if (number >= 0 && KYMO__UNLIKELY(thread->timed || accelerator_is_ready()))
		node_began_holding(
			thread, (uint64_t)number,
			(uint64_t)backward_word_at(function, symbols.forward_thread_offset));
	else if (number >= 0)
		node_began(thread, (uint64_t)number,
			   (uint64_t)backward_word_at(function, symbols.forward_thread_offset));
	return out_context;
}

/* After each node, because the last node of a module cannot be predicted. Kernels queued so far are
   before the event. */
static void stamp_end(struct thread *thread)
{
	PyGILState_STATE held;

	if (!Py_IsInitialized())
		return;
	held = PyGILState_Ensure();
	accelerator_stamp(&thread->last_stamp);
	PyGILState_Release(held);
}

static void node_end(const void *function, void *context)
{
	struct thread *thread = symbols.sequence_offset ? thread_get() : NULL;

	(void)function, (void)context;
	if (!thread)
		return;
	thread->last_end = kymo__ticks();
	if (KYMO__UNLIKELY(accelerator_is_ready()) && thread->top > thread->base)
		stamp_end(thread);
}

/* A backward of two nodes, as most modules have, in a forward at the end of this thread's ring. */
uint64_t backward_cost(struct thread *thread, struct entry *entry, int times)
{
	uint64_t function[SCAN_WORDS] = { 0 }, number = symbols.peek(), start, ticks;
	uint64_t last_end = thread->last_end, child_ticks = thread->call_child_ticks;
	int base = thread->base;
	void *context;

	function[symbols.sequence_offset / 8] = number;
	function[symbols.forward_thread_offset / 8] = thread->torch_id;
	thread->ring[thread->head % RING_RECORDS] = (struct record){ .s0 = number,
								     .s1 = number + 1,
								     .entry = entry };
	kymo__store_release(&thread->head, thread->head + 1);
	thread->base = thread->top;
	start = kymo__ticks();
	for (int i = 0; i < times; i++) {
		for (int node = 0; node < 2; node++) {
			node_start(&context, function);
			node_end(function, NULL);
		}
		while (thread->top > thread->base)
			backward_pop(thread);
	}
	ticks = kymo__ticks() - start;
	kymo__store_release(&thread->head, thread->head - 1);
	thread->base = base;
	thread->last_end = last_end;
	thread->call_child_ticks = child_ticks;
	return ticks;
}

/* ---- on and off ---- */

/* Added once; while disabled, it costs nothing. */
static void add_callback(void)
{
	struct callback nodes = { .start = node_start, .end = node_end, .sampling = 1.0 };

	nodes.scopes[SCOPE_BACKWARD_FUNCTION] = 1;
	state.handle = symbols.add_callback(nodes);
	state.callback_added = true;
}

void backward_callback(bool on)
{
	if (on == state.callback_on || !symbols.complete)
		return;
	if (!state.callback_added)
		add_callback();
	else
		(on ? symbols.reenable_callback : symbols.disable_callback)(state.handle);
	state.callback_on = on;
}

/* ---- the call ---- */

static PyMethodDef *method; /* of the engine; NULL: not replaced */
static PyCFunctionWithKeywords original;
static struct entry *call_entry;

static void end_call(struct thread *thread, uint64_t start, const struct kymo_zone *zone,
		     struct span *span, int base, int phase_before)
{
	struct row row = { .entry = call_entry, .stage = STAGE_BACKWARD, .step = steps_now() };

	while (thread->top > thread->base)
		backward_pop(thread);
	thread->base = base;
	thread->backwards--;
	row.child_ticks = thread->call_child_ticks;
	row.start = start;
	row.end = kymo__ticks();
	steps_zone_end(zone, row.end, 0);
	if (span->begin.event)
		accelerator_end(span, &(struct span_of){ .entry = call_entry });
	if (call_entry->selected)
		steps_write(&row);
	steps_phase(thread, phase_before, row.end);
}

static PyObject *run_backward(PyObject *self, PyObject *args, PyObject *keywords)
{
	struct thread *thread = torch_is_on() ? thread_get() : NULL;
	struct kymo_zone zone = { 0 };
	struct span span = { 0 };
	struct frame *frame;
	uint64_t start, current, child_ticks;
	int base, phase_before;
	PyObject *result;

	if (!thread)
		return original(self, args, keywords);
	base = thread->base;
	phase_before = thread->phase;
	/* Calls from inside (checkpoints) are not part of a forward that may be running outside. */
	frame = thread->frame;
	current = thread->current;
	child_ticks = thread->call_child_ticks;
	thread->frame = NULL;
	thread->current = thread->call_child_ticks = 0;
	thread->base = thread->top;
	thread->backwards++;
	if (call_entry->selected && !thread->skipping)
		zone = kymo_zone_begin_id(call_entry->name);
	if (KYMO__UNLIKELY(accelerator_is_there))
		accelerator_look();
	start = kymo__ticks();
	if (KYMO__UNLIKELY(accelerator_is_ready()) && call_entry->selected)
		accelerator_begin(&span, start);
	steps_phase(thread, KYMO_PHASE_BACKWARD, start);
	result = original(self, args, keywords);
	end_call(thread, start, &zone, &span, base, phase_before);
	thread->frame = frame;
	thread->current = current;
	thread->call_child_ticks = child_ticks;
	return result;
}

int backward_hook(PyObject *descriptor)
{
	PyMethodDef *found;

	if (method)
		return 0;
	if (!Py_IS_TYPE(descriptor, &PyMethodDescr_Type))
		return -1;
	found = ((PyMethodDescrObject *)descriptor)->d_method;
	if (found->ml_flags != (METH_VARARGS | METH_KEYWORDS) || !symbols_is_writable(found))
		return -1;
	call_entry = names_fixed("backward");
	original = (PyCFunctionWithKeywords)(void (*)(void))found->ml_meth;
	method = found;
	method->ml_meth = (PyCFunction)(void (*)(void))run_backward;
	return 0;
}

void backward_unhook(void)
{
	if (!method || method->ml_meth != (PyCFunction)(void (*)(void))run_backward)
		return;
	method->ml_meth = (PyCFunction)(void (*)(void))original;
	method = NULL;
}

bool backward_is_hooked(void)
{
	return method != NULL;
}
