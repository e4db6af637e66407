/*
 * kymo._torch records PyTorch without changing the program: no Python hooks, nothing on the
 * autograd graph, no tensor is read. Some places are replaced and later restored:
 *
 *	forward.c    the C entry (vectorcall) of the one function nn.Module.__call__
 *	backward.c   a callback of at::RecordFunction, and the C entry of the engine's run_backward
 *	scopes.c     optimizer steps and waits for data: the C entry of two operators
 *	symbols.c    the functions and offsets of libtorch; known builds
 *	names.c      module names                thread.c  per-thread data
 *	paths.c      paths of modules            owners.c  owners of modules
 *	steps.c      steps, phases, rows         watch.c   variables at each step
 *	accelerator.c  time on a device          losses.c  device time that was not measured
 *	cost.c       the cost of a row           collective*.c  of torch.distributed
 *	ops.c, op_*.c  operators (ops.h)
 *	module.c     the Python module
 *
 * Locking: the GIL protects names and settings. Per-thread data is used by its thread alone, except
 * the ring of records, which threads of the autograd engine read (they may see an old record, never
 * a bad pointer: entries are reused, not freed).
 */
#ifndef KYMO_PYTHON_TORCH_H
#define KYMO_PYTHON_TORCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <kymo/device.h>

#include "base/format.h"
#include "base/schema.h"
#include "record/record.h"

/* ---- names.c ----------------------------------------------------------------------------- */

/* A module under one parent. Never freed; reused when its module is gone. */
struct entry {
	uint32_t serial; /* unique; children refer to it */
	uint32_t parent; /* serial of its caller; 0: none */
	uint32_t name; /* id in the recording, source torch */
	uint32_t model; /* of its root */
	uint32_t instance; /* number of its root among those alive: 0, 1, … */
	bool selected; /* by torch_modules */
	bool alone; /* called by no module; the path is that in its owner */
	char *path; /* "layers.0.attn"; "" for a root */
	char *text; /* the text of `name` */
	PyObject *module; /* its address; not owned, never dereferenced */
	struct entry *root;
	struct entry *next; /* of the same module, or in the free list */
};

/* The module's entry under that parent (NULL: it is a root). Never NULL. GIL. parent_module is the
   caller, and alive. */
struct entry *names_find(PyObject *module, const struct entry *parent, PyObject *parent_module);
/* The module's first entry, or NULL. */
struct entry *names_first(PyObject *module);
/* An entry that is not a module: "backward". */
struct entry *names_fixed(const char *text);
void names_select(const char *pattern); /* "": all */
size_t names_count(void); /* known modules; for tests */

/* ---- paths.c, owners.c ---- */

#define PATH_BYTES 512
#define PATHS_BUDGET 20000 /* limit of modules searched for an unknown one */
#define PATHS_DEPTH 24

/* The path of the module in that parent, without the names that wrappers add: "" if it is only
   wrapped. Direct children come first. Takes the modules it looks at off the budget. GIL. */
bool paths_find(PyObject *parent, PyObject *module, int *budget, char path[PATH_BYTES]);
/* Whether the module is anywhere in that parent: looks at each of its modules once. GIL. */
bool paths_hold(PyObject *parent, PyObject *module, int depth, int *budget);
/* A new reference to the module that contains this one; NULL: none is known. GIL. */
PyObject *owners_find(PyObject *module);

/* ---- accelerator.c ------------------------------------------------------------------------- */

/* A recorded timing event of torch. */
struct stamp {
	PyObject *event; /* NULL: none */
	uint64_t ticks; /* of the host, before it was recorded */
	uint32_t queue; /* number of its stream in the recording */
	int32_t device;
};

/* The time between two events, for a row. */
struct span {
	struct stamp begin;
	struct kymo_device_launch launch;
};

struct span_of {
	const struct entry *entry;
	uint32_t depth;
	bool root; /* an execution of a model */
};

extern bool accelerator_is_there; /* this torch supports one, whether the program uses it or not */
/* Checks whether the program uses an accelerator and devices are recorded; called before each
   outermost call. Also reports spans that have passed. GIL, like all others. */
void accelerator_look(void);
bool accelerator_is_ready(void); /* result of the last check; no GIL */
/* start: that of the row. span->begin.event is NULL if no event could be recorded; do not end such
   spans. */
void accelerator_begin(struct span *span, uint64_t start);
void accelerator_end(struct span *span, const struct span_of *of);
/* At an event that was recorded before; the caller keeps it. */
void accelerator_end_at(struct span *span, const struct stamp *end, const struct span_of *of);
void accelerator_drop(struct span *span);
void accelerator_stamp(struct stamp *last); /* records again */
void accelerator_set(const char *type, PyObject *initialized, PyObject *stream, PyObject *make,
		     PyObject *capturing);
void accelerator_unset(void);

enum loss { LOSS_FULL, LOSS_FAILED, LOSS_CAPTURED, LOSS_MOVED, LOSS_AT_END, LOSS_COUNT };
void losses_count(enum loss loss, uint64_t events);
void losses_say(void); /* reports losses that are not in a row yet */

/* ---- thread.c ---------------------------------------------------------------------------- */

/* Modules between a forward and its backward; older ones get no backward row. */
#define RING_RECORDS 65536u
#define NODES_MAX 128
#define SCOPES_MAX 16

/* A module's forward, for backward: it created the autograd nodes [s0, s1). */
struct record {
	uint64_t s0, s1; /* s1 UINT64_MAX: still running */
	struct entry *entry;
	uint64_t parent; /* position + 1; 0: none */
};

/* A running forward of a module; on the C stack of its call. */
struct frame {
	struct frame *parent;
	PyObject *module;
	struct entry *entry;
	struct kymo_zone zone;
	struct span span;
	uint64_t start, child_ticks, position;
	uint32_t step;
	uint16_t depth;
	bool recomputed;
};

/* A module whose backward is running. */
struct node {
	struct entry *entry;
	uint64_t owner; /* torch's number of the thread that ran its forward */
	uint64_t s0, s1, start, child_ticks;
	struct span span;
	uint32_t step;
	uint16_t depth;
};

enum scope_kind { SCOPE_STEP, SCOPE_ZERO_GRAD, SCOPE_DATA, SCOPE_OTHER };

struct scope {
	const void *record; /* returned by enter, passed to leave */
	const void *handled; /* the exception that was being handled; for comparison only */
	enum scope_kind kind;
	int phase_before;
	uint32_t name;
	uint64_t start;
	struct kymo_zone zone;
	struct span span;
};

struct thread {
	uint64_t torch_id; /* at::RecordFunction::currentThreadId() */
	bool gone; /* the thread has ended */
	struct record *ring;
	uint64_t head; /* records ever written; written by the thread, read by others */
	uint64_t current; /* position + 1 of the innermost running forward */
	struct frame *frame;
	bool skipping; /* inside a forward that is not recorded */
	/* backward */
	struct node nodes[NODES_MAX];
	int top, base, backwards; /* open nodes; those below base belong to an outer backward */
	uint64_t last_end, call_child_ticks;
	struct stamp last_stamp; /* after the last node, if there is an accelerator */
	bool timed; /* nodes have or had an event: they need the GIL to end */
	struct thread *last_owner;
	struct op_thread *ops; /* NULL: ran none while they were recorded */
	/* scopes and phases */
	struct scope scopes[SCOPES_MAX];
	int scope_count, steps_open;
	int phase; /* enum kymo_phase, or -1: none */
	uint64_t phase_since, step_start;
	uint64_t phase_ticks[KYMO_PHASE_COUNT];
	bool loading, evaluated; /* in a loop over a data loader; with a forward since the batch */
	struct thread *next;
};

struct thread *thread_get(void); /* the calling thread's; NULL: no memory */
struct thread *thread_of(uint64_t torch_id); /* any thread's, or NULL */

/* ---- symbols.c --------------------------------------------------------------------------- */

/* at::RecordFunctionCallback as passed by value. All versions so far begin like this; the rest
   (needs_inputs and others) is zero. */
struct callback {
	void *(*start)(void **out_context, const void *function);
	void (*end)(const void *function, void *context);
	double sampling;
	uint8_t scopes[40];
};
#define SCOPE_BACKWARD_FUNCTION 1

struct symbols {
	uint64_t (*peek)(void);
	uint64_t (*add_callback)(struct callback);
	void (*disable_callback)(uint64_t);
	void (*reenable_callback)(uint64_t);
	uint64_t (*thread_id)(void);
	const char *(*name)(const void *function); /* of an at::RecordFunction; may be NULL */
	char build[64]; /* the build id of libtorch_cpu in hex */
	/* Offsets in an at::RecordFunction; 0: unknown, so there are no rows of backward. */
	uint32_t sequence_offset, forward_thread_offset;
	bool complete; /* all functions were found */
};
extern struct symbols symbols;

/* Looks them up once and fills `symbols`. NULL, or a sentence about what is missing. */
const char *symbols_find(void);
bool symbols_known_build(void); /* a build tested here, with known offsets */
bool symbols_is_writable(const void *address);
/* A handle of libtorch_cpu.so, which torch keeps open; NULL: not loaded. */
void *symbols_library(void);

/* ---- collectives.c ----------------------------------------------------------------------- */

/* Records collectives from now on; called before the first group is made. False: this build of
   torch is not supported. */
bool collectives_hook(void);
void collectives_unhook(void);

/* ---- steps.c ----------------------------------------------------------------------------- */

enum stage { STAGE_FORWARD, STAGE_BACKWARD, STAGE_STEP, STAGE_COUNT };

/* The settings of the control page as last read. GIL, or the thread of a root forward. */
struct settings {
	uint64_t changes;
	uint32_t every;
	uint32_t ops; /* operators in every n-th step; 0: none, 1: all */
	bool seen;
};

struct state {
	bool hooked; /* vectorcall and run_backward are replaced */
	bool callback_added, callback_on;
	bool cost_known; /* measured, or cannot be */
	uint64_t handle;
	uint32_t step; /* of optimizers; without training, of a data loader or root forwards */
	uint32_t sequence; /* of rows in a step */
	bool trains; /* an autograd graph was made: root forwards are not steps */
	struct settings settings;
	/* returns (device, allocated, peak, reserved) or None; NULL: there is no accelerator */
	PyObject *memory;
	uint32_t rows[STAGE_COUNT + 1]; /* rows written, by stage; the last: on the cost lane */
};
extern struct state state;

static inline bool torch_is_on(void)
{
	return kymo__is_on(KYMO_ON_ZONES | KYMO_ON_TORCH) == (KYMO_ON_ZONES | KYMO_ON_TORCH);
}

struct row {
	const struct entry *entry;
	enum stage stage;
	uint64_t start, end, child_ticks;
	uint32_t step, flags;
	uint16_t depth;
};

void steps_write(const struct row *row);
/* Rows of this thread only measure the cost of rows (cost.c). */
extern _Thread_local bool steps_aside;
/* The current step number for rows. */
uint32_t steps_now(void);
/* Whether modules are recorded in this step. Reads the control page if it has changed. GIL. */
bool steps_wanted(void);
void steps_phase(struct thread *thread, int phase, uint64_t now);
void steps_optimizer_ended(struct thread *thread, uint64_t now);
/* An autograd graph was made, or an optimizer steps: forwards and batches are no longer counted. */
void steps_training_began(void);
/* A root's forward without a graph, in a program that never made one. */
void steps_inference_ended(struct thread *thread);
/* The thread asks a data loader for a batch; there are no more. */
void steps_batch_wanted(struct thread *thread, uint64_t now);
void steps_batches_ended(struct thread *thread);
/* Ends a zone at a given moment. */
void steps_zone_end(const struct kymo_zone *zone, uint64_t end, uint32_t flags);

/* ---- forward.c, backward.c, scopes.c, watch.c ---- */

int forward_hook(PyObject *function); /* nn.Module.__call__; -1: unsupported kind of function */
void forward_unhook(void);
bool forward_is_hooked(void);

int backward_hook(PyObject *descriptor); /* the method run_backward of the engine's type */
void backward_unhook(void);
bool backward_is_hooked(void);
void backward_callback(bool on);
/* torch's own operators, builtins; -1: unsupported kind. */
int scopes_hook(PyObject *enter, PyObject *leave);
void scopes_unhook(void);
bool scopes_are_hooked(void);
/* Finds the offsets by observing a backward with known numbers; see module.c. */
void backward_calibrate_begin(void);
int backward_calibrate_end(uint32_t *out_sequence, uint32_t *out_thread);
void backward_calibrate_expect(uint64_t from, uint64_t to, uint64_t thread);

/* ---- cost.c, module.c -------------------------------------------------------------------- */

/* After the first root forward: measures the cost of a module's row for kymo.overhead. Once.
   GIL. */
void cost_measure(struct thread *thread, PyObject *module);
/* Ticks of so many empty forwards or backwards of that module. Rows go to the current lane. */
uint64_t forward_cost(struct thread *thread, PyObject *module, int times);
uint64_t backward_cost(struct thread *thread, struct entry *entry, int times);

/* At the beginning of a step or of a root's forward: opens or closes the window for operators.
   GIL. */
void ops_look(void);
/* Whether operators are recorded in that step. */
bool ops_wanted(uint32_t step);
/* "float32"; NULL: unknown. */
const char *op_dtype(int64_t dtype);

/* Checks whether the process that tries this build of torch has ended. GIL. */
void trial_look(void);

/* "loss@train_step,lr@train_step"; true: at least one is watched */
bool watch_set(const char *words);
bool watch_any(void);
void watch_sample(void); /* GIL */

#endif
