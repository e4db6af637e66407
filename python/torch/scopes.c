/*
 * Scopes that torch itself opens: optimizer steps, zero_grad, waits for data. The C entries of the
 * two operators by which Python opens and closes a scope are replaced; they are called rarely, and
 * Python code cannot see it. A callback of at::RecordFunction for such scopes would work, but has
 * side effects: it also reports every message between ranks (c10d::Work), and keeps a copy of its
 * thread's state, including Python's, until a thread of the transport releases it.
 */
#include <string.h>

#include "torch.h"

static const struct {
	const char *prefix, *suffix;
	const char *zone; /* appended to the class; NULL: nothing */
	enum scope_kind kind;
	enum kymo_phase phase;
} scopes[] = {
	{ "Optimizer.step#", ".step", "step", SCOPE_STEP, KYMO_PHASE_OPTIMIZER },
	{ "Optimizer.zero_grad#", ".zero_grad", "zero_grad", SCOPE_ZERO_GRAD,
	  KYMO_PHASE_OPTIMIZER },
	{ "enumerate(DataLoader)#", ".__next__", "next", SCOPE_DATA, KYMO_PHASE_DATA },
};
#define SCOPE_ROWS (sizeof(scopes) / sizeof(scopes[0]))

static size_t scope_of(const char *name)
{
	size_t i = 0;

	while (i < SCOPE_ROWS && strncmp(name, scopes[i].prefix, strlen(scopes[i].prefix)) != 0)
		i++;
	return i;
}

/* "AdamW" of "Optimizer.step#AdamW.step"; `more` is appended after a dot. */
static uint32_t scope_name(const char *name, size_t row, const char *more)
{
	const char *from = scopes[row].kind == SCOPE_DATA
				   ? "DataLoader" /* not the class of its private iterator */
				   : name + strlen(scopes[row].prefix);
	size_t bytes = strlen(from), tail = strlen(scopes[row].suffix);
	char text[256];

	if (bytes > tail && !strcmp(from + bytes - tail, scopes[row].suffix))
		bytes -= tail;
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(bytes < 200 ? bytes : 200), from,
		 more ? "." : "", more ? more : "");
	return kymo_name_full(text, strlen(text), NULL, 0, 0, KYMO_SOURCE_TORCH, 0);
}

/* The exception that is being handled, for comparison; NULL: none. */
static const void *scopes_handled(bool *out_is_stop)
{
	PyObject *kind, *value, *trace;

	PyErr_GetExcInfo(&kind, &value, &trace);
	*out_is_stop = value && PyErr_GivenExceptionMatches(value, PyExc_StopIteration);
	Py_XDECREF(kind);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return value;
}

/* The scope of a data loader is left by StopIteration: there are no more batches. One that was
   handled before is not its own: "except StopIteration: batch = next(again)". */
static bool has_stopped(const struct scope *scope)
{
	bool stop;

	return scope->kind == SCOPE_DATA && scopes_handled(&stop) != scope->handled && stop;
}

static void scope_began(struct thread *thread, const void *record, const char *name, size_t row)
{
	struct scope *scope = &thread->scopes[thread->scope_count];
	bool stop;

	if (thread->scope_count == SCOPES_MAX)
		return;
	thread->scope_count++;
	scope->record = record;
	scope->handled = scopes_handled(&stop);
	scope->kind = scopes[row].kind;
	scope->name = scope_name(name, row, NULL);
	scope->phase_before = thread->phase;
	scope->zone = kymo_zone_begin_id(scope_name(name, row, scopes[row].zone));
	scope->start = kymo__ticks();
	scope->span.begin.event = NULL;
	if (KYMO__UNLIKELY(accelerator_is_ready()) && scope->kind == SCOPE_STEP)
		accelerator_begin(&scope->span, scope->start);
	thread->steps_open += scope->kind == SCOPE_STEP;
	if (scope->kind == SCOPE_STEP)
		steps_training_began();
	else if (scope->kind == SCOPE_DATA)
		steps_batch_wanted(thread, scope->start);
	steps_phase(thread, scopes[row].phase, scope->start);
}

static void end_optimizer(struct thread *thread, struct scope *scope, uint64_t now)
{
	struct entry optimizer = { .name = scope->name };
	struct row row = { .entry = &optimizer,
			   .stage = STAGE_STEP,
			   .start = scope->start,
			   .end = now,
			   .step = steps_now() };

	if (scope->span.begin.event)
		accelerator_end(&scope->span, &(struct span_of){ .entry = &optimizer });
	steps_write(&row);
	thread->steps_open--;
	if (thread->steps_open)
		return; /* an optimizer inside another: one step */
	if (watch_any())
		watch_sample();
	steps_optimizer_ended(thread, now);
}

/* Scopes end in order; one that ended on another thread, or was left by a C++ exception, ends with
   its parent. */
static void scope_ended(const void *record)
{
	struct thread *thread = thread_get();
	uint64_t now = kymo__ticks();
	int at;

	for (at = thread ? thread->scope_count - 1 : -1; at >= 0; at--)
		if (thread->scopes[at].record == record)
			break;
	if (at < 0)
		return;
	for (; thread->scope_count > at;) {
		struct scope *scope = &thread->scopes[--thread->scope_count];

		steps_zone_end(&scope->zone, now, 0);
		if (scope->kind == SCOPE_STEP)
			end_optimizer(thread, scope, now);
		steps_phase(thread, scope->phase_before, now);
		if (has_stopped(scope))
			steps_batches_ended(thread);
	}
}

/* ---- the operators ---- */

typedef PyObject *(*array_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* Operators of torch, as called from Python: _record_function_enter(name, args) returns a record,
   _record_function_exit(record) takes it. */
static struct borrowed {
	PyObject *holder; /* keeps the method alive */
	PyMethodDef *method; /* NULL: not replaced */
	PyCFunction original, ours;
} enter, leave;

static struct thread *thread_for(PyObject *text, const char **out_name, size_t *out_row)
{
	*out_name = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
	if (!*out_name) {
		PyErr_Clear(); /* torch reports the error */
		return NULL;
	}
	*out_row = scope_of(*out_name);
	return *out_row < SCOPE_ROWS && torch_is_on() ? thread_get() : NULL;
}

/* The scope is identified by the record that enter returns and leave is called with. */
static PyObject *entered(PyObject *text, PyObject *record)
{
	const char *name;
	size_t row;
	struct thread *thread = record && text ? thread_for(text, &name, &row) : NULL;

	if (thread)
		scope_began(thread, record, name, row);
	return record;
}

/* Builds of torch pass arguments as a tuple or as an array. */
static PyObject *enter_tuple(PyObject *self, PyObject *args, PyObject *keywords)
{
	PyCFunctionWithKeywords original = (PyCFunctionWithKeywords)(void (*)(void))enter.original;

	return entered(PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL,
		       original(self, args, keywords));
}

static PyObject *leave_tuple(PyObject *self, PyObject *args, PyObject *keywords)
{
	PyCFunctionWithKeywords original = (PyCFunctionWithKeywords)(void (*)(void))leave.original;

	if (PyTuple_GET_SIZE(args))
		scope_ended(PyTuple_GET_ITEM(args, 0));
	return original(self, args, keywords);
}

static PyObject *enter_array(PyObject *self, PyObject *const *args, Py_ssize_t count,
			     PyObject *keywords)
{
	array_function original = (array_function)(void (*)(void))enter.original;

	return entered(count ? args[0] : NULL, original(self, args, count, keywords));
}

static PyObject *leave_array(PyObject *self, PyObject *const *args, Py_ssize_t count,
			     PyObject *keywords)
{
	array_function original = (array_function)(void (*)(void))leave.original;

	if (count)
		scope_ended(args[0]);
	return original(self, args, count, keywords);
}

static int borrow(struct borrowed *borrowed, PyObject *builtin, PyCFunctionWithKeywords tuple,
		  array_function array)
{
	PyMethodDef *method;
	PyCFunction ours;

	if (borrowed->method)
		return 0;
	if (!PyCFunction_CheckExact(builtin))
		return -1;
	method = ((PyCFunctionObject *)builtin)->m_ml;
	ours = method->ml_flags == (METH_VARARGS | METH_KEYWORDS)
		       ? (PyCFunction)(void (*)(void))tuple
	       : method->ml_flags == (METH_FASTCALL | METH_KEYWORDS)
		       ? (PyCFunction)(void (*)(void))array
		       : NULL;
	if (!ours || !symbols_is_writable(method))
		return -1;
	Py_INCREF(builtin);
	*borrowed = (struct borrowed){
		.holder = builtin, .method = method, .original = method->ml_meth, .ours = ours
	};
	method->ml_meth = ours;
	return 0;
}

static void scopes_give_back(struct borrowed *borrowed)
{
	/* Replaced by another tool after us: ours only forwards calls then. */
	if (!borrowed->method || borrowed->method->ml_meth != borrowed->ours)
		return;
	borrowed->method->ml_meth = borrowed->original;
	borrowed->method = NULL;
	Py_CLEAR(borrowed->holder);
}

int scopes_hook(PyObject *enter_builtin, PyObject *leave_builtin)
{
	int rc = borrow(&enter, enter_builtin, enter_tuple, enter_array);

	if (!rc)
		rc = borrow(&leave, leave_builtin, leave_tuple, leave_array);
	if (rc)
		scopes_unhook();
	return rc;
}

void scopes_unhook(void)
{
	scopes_give_back(&enter);
	scopes_give_back(&leave);
}

bool scopes_are_hooked(void)
{
	return enter.method != NULL;
}
