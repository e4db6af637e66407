/*
 * The tables that kymo itself writes, defined once: the recorder declares its streams from these
 * definitions, a scan takes the columns of a missing table from them, and docs/tables is generated
 * from them.
 */
#ifndef KYMO_BASE_SCHEMA_H
#define KYMO_BASE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/kymo.h>

struct schema_table {
	const char *name; /* of the stream: "trace.zones" */
	const struct kymo_column *columns;
	size_t column_count;
	size_t row_bytes;
	const char *about; /* one sentence for the docs */
};

/* Fixed indexes of kymo's own tables in a process; the program's tables follow. */
enum schema_id {
	SCHEMA_NONE = 0,
	SCHEMA_ZONES = 1,
	SCHEMA_MARKS = 2,
	SCHEMA_COUNTERS = 3,
	SCHEMA_STEPS = 4,
	SCHEMA_TEXT = 5,
	SCHEMA_HOST_PROCESS = 6,
	SCHEMA_HOST_IO = 7,
	SCHEMA_HOST_CPU = 8,
	SCHEMA_HOST_NETWORK = 9,
	SCHEMA_CONFIG = 10,
	SCHEMA_SAMPLES = 11, /* a stack of a thread at a moment */
	SCHEMA_FRAMES = 12, /* the frames of stacks */
	SCHEMA_TORCH = 13,
	SCHEMA_VARIABLES = 14,
	SCHEMA_HOST_THREADS = 15,
	SCHEMA_HOST_GPU = 16,
	SCHEMA_HOST_CGROUP = 17,
	SCHEMA_OVERHEAD = 18, /* the measured cost of a source */
	SCHEMA_GAPS = 19, /* spans that a source could not record */
	SCHEMA_COLLECTIVES = 20, /* of process groups: all_reduce, send, … */
	SCHEMA_NATIVE_SAMPLES = 21, /* a native stack of a thread at a moment */
	SCHEMA_NATIVE_FRAMES = 22, /* the frames of these stacks */
	SCHEMA_HOST_MEMORY = 23, /* RSS, more often than in host.process */
	SCHEMA_IMPORTS = 24, /* events of other tools' traces */
	SCHEMA_LOOP_STALLS = 25, /* callbacks that blocked an event loop */
	SCHEMA_DEVICE_OPS = 26,
	SCHEMA_DEVICE_MEMORY = 27,
	SCHEMA_DEVICE_CLOCKS = 28,
	SCHEMA_ALLOC = 29, /* an allocation or a free */
	SCHEMA_ALLOC_FRAMES = 30, /* the frames of their stacks: struct schema_frame_row */
	SCHEMA_NATIVE_MODULES = 31, /* the files of the frames of native.frames */
	SCHEMA_TORCH_OPS = 32, /* an operator of torch */
	SCHEMA_TORCH_PEAKS = 33, /* what a device can compute */
	SCHEMA_LINKS = 34, /* a forward operator and its backward operator */
	SCHEMA_TRIGGERS = 35, /* what triggers did */
	SCHEMA_COUNT = 36, /* the program's tables begin here */
};

struct schema_mark_row {
	uint64_t ts_ticks;
	uint32_t name;
	uint32_t thread;
	uint32_t step;
	uint32_t text; /* number of the text in trace.text of this thread; 0: none */
};

/* A forward operator of torch and the backward operator that belongs to it. */
struct schema_link_row {
	uint64_t from_ticks, to_ticks; /* their starts */
	uint64_t sequence; /* of autograd */
	uint32_t from_name, to_name;
	int32_t from_tid;
	uint32_t thread; /* of the backward operator */
};

struct schema_counter_row {
	uint64_t ts_ticks;
	double value;
	uint32_t name;
	uint32_t thread;
	uint32_t step;
	uint32_t reserved;
};

struct schema_step_row {
	uint64_t start_ticks;
	uint64_t duration_ticks;
	uint64_t phase_ticks[KYMO_PHASE_COUNT]; /* 0: unknown */
	uint32_t step;
	uint32_t name;
	uint32_t thread;
	uint32_t reserved;
};

/* A text of any length is split into parts at UTF-8 boundaries; the view joins them by (thread,
   number). */
#define SCHEMA_TEXT_PART_BYTES 32
struct schema_text_row {
	uint64_t at_ticks; /* of the zone's start, or the mark's ts */
	uint32_t thread;
	uint32_t number; /* of the text, per thread, from 1 */
	uint32_t name; /* of the zone or mark */
	uint16_t part;
	uint16_t kind; /* enum schema_text_kind */
	uint64_t value; /* for SCHEMA_TEXT_VALUE */
	char text[SCHEMA_TEXT_PART_BYTES];
};
enum schema_text_kind { SCHEMA_TEXT_ZONE = 0, SCHEMA_TEXT_MARK = 1, SCHEMA_TEXT_VALUE = 2 };

struct schema_host_process_row {
	uint64_t ts_ticks;
	uint64_t rss_bytes, vms_bytes;
	uint64_t minor_faults, major_faults; /* since the process began */
	uint64_t voluntary_switches, involuntary_switches;
	double cpu_pct; /* of one core, over the last interval */
	int32_t pid;
	uint32_t threads;
	uint64_t peak_bytes; /* highest resident memory so far; 0: unknown */
	uint64_t cpu_ns, children_cpu_ns; /* its own; of waited-for children */
	uint64_t run_delay_ns; /* of all threads: ready to run, but without a core */
	uint64_t family_peak_bytes; /* of it or of a child that it waited for; 0: unknown */
};

/* Written when the RSS has changed. */
struct schema_host_memory_row {
	uint64_t ts_ticks;
	int32_t pid;
	uint32_t reserved;
	uint64_t rss_bytes;
	uint64_t since_ns; /* the time since the RSS was last read; 0: never */
};

struct schema_host_io_row {
	uint64_t ts_ticks;
	uint64_t read_bytes, write_bytes; /* since the process began */
	int32_t pid;
	uint32_t reserved;
	uint64_t read_calls, write_calls; /* system calls, since the process began */
	uint64_t moved_bytes; /* by these calls, also from memory, pipes and sockets */
	uint64_t kernel_ns; /* CPU time in the kernel, since the process began */
};

struct schema_host_cpu_row {
	uint64_t ts_ticks;
	double busy_pct, iowait_pct, pressure_pct;
	int32_t cpu; /* -1: all */
	uint32_t reserved;
};

struct schema_host_network_row {
	uint64_t ts_ticks;
	uint64_t rx_bytes, tx_bytes;
	char interface[16];
	int32_t pid; /* one of the namespace */
	uint32_t reserved;
};

struct schema_host_threads_row {
	uint64_t ts_ticks;
	double cpu_pct; /* of one core, over the last interval */
	uint64_t cpu_ns; /* since the thread began */
	uint64_t voluntary_switches, involuntary_switches;
	int32_t pid, tid;
	char name[16];
	char state[16];
	uint64_t run_delay_ns; /* ready to run, but without a core; since the thread began */
	uint32_t activity, waits_for; /* names, as of a sample; 0: unknown */
};

struct schema_host_gpu_row {
	uint64_t ts_ticks;
	double util_pct, power_w; /* below 0: unknown */
	uint64_t used_bytes, total_bytes;
	uint32_t device;
	uint32_t reserved;
};

struct schema_host_cgroup_row {
	uint64_t ts_ticks;
	uint64_t memory_bytes, memory_limit_bytes; /* 0: none, or unknown */
	double cpu_limit; /* cores; 0: none */
	uint64_t throttled_ns, throttled_count; /* since the group began */
	double pressure_pct[3][2]; /* cpu, memory, io; some, full; below 0: unknown */
	int32_t pid; /* one of the group */
	uint32_t reserved;
	char path[64];
	uint64_t oom_kills; /* since the group began */
};

struct schema_config_row {
	uint64_t ts_ticks;
	char key[32];
	char old_value[128]; /* truncated if longer */
	char new_value[128];
	char by[56];
};

/* One row for each action of a trigger that fired, and for what kept one from it. */
struct schema_trigger_row {
	uint64_t ts_ticks;
	uint64_t rows; /* that the condition returned for the first time */
	uint64_t bytes; /* of the saved file */
	char trigger[32];
	char action[64]; /* truncated if longer */
	char result[160]; /* "ok", or a sentence */
	char saved[128]; /* the file, below the recording's directory; "": none */
	char row[192]; /* the first of the rows, as JSON; truncated if longer */
};

/* Written from time to time by a source that measures itself; its last row counts. */
struct schema_cost_row {
	uint64_t ts_ticks;
	uint64_t events; /* since it began */
	uint64_t cost_ns; /* CPU time, since it began */
	char source[16];
};

/* A span in which a source could not record everything. */
struct schema_gap_row {
	uint64_t start_ticks;
	uint64_t duration_ticks;
	uint64_t events; /* number of occurrences; 0: unknown */
	uint32_t cause; /* a name; its source is the one with the gap */
	uint32_t thread;
};

/* What became of the events of one kind in an imported trace. */
struct schema_import_row {
	uint64_t events;
	uint32_t file; /* names */
	uint32_t category;
	uint32_t became; /* a table, or the reason why there is no row */
	uint16_t phase; /* a letter */
	uint16_t kept; /* 1: rows of a table */
};

/* A module's forward or backward, or an optimizer's step. */
struct schema_torch_row {
	uint64_t start_ticks;
	uint64_t duration_ticks;
	uint64_t child_ticks; /* of modules inside it */
	uint32_t module; /* names; source torch */
	uint32_t model; /* of its outermost module; 0: none */
	uint32_t thread;
	uint32_t step;
	uint32_t sequence;
	uint16_t stage; /* enum schema_torch_stage */
	uint16_t depth;
	uint32_t flags; /* SCHEMA_TORCH_* */
	int32_t device; /* -1: no accelerator, and memory is unknown */
	int64_t allocated_bytes, peak_bytes, reserved_bytes;
};
enum schema_torch_stage {
	SCHEMA_TORCH_FORWARD,
	SCHEMA_TORCH_BACKWARD,
	SCHEMA_TORCH_STEP,
	SCHEMA_TORCH_OTHER, /* of an operator alone: in none of these */
};
#define SCHEMA_TORCH_RECOMPUTED 1u /* a forward that a checkpoint repeats in backward */
#define SCHEMA_TORCH_RAISED 2u

/* An operator of torch; it is a zone of the source op, too. */
struct schema_torch_op_row {
	uint64_t start_ticks;
	uint64_t duration_ticks;
	uint64_t flops; /* with SCHEMA_TORCH_OP_COUNTED */
	int64_t sequence; /* of autograd; -1: none */
	uint32_t name; /* of the operator; names, and so are the next four */
	uint32_t module, model; /* as in a schema_torch_row; 0: none */
	uint32_t shapes, dtypes; /* of its inputs; 0: unknown */
	uint32_t thread;
	uint32_t step;
	uint16_t kind; /* enum schema_torch_stage, and SCHEMA_TORCH_OP_* */
	uint16_t depth; /* of operators: 0 is outermost */
};
#define SCHEMA_TORCH_OP_STAGE 0xffu
#define SCHEMA_TORCH_OP_COUNTED 0x100u /* it has a formula, and so no operator in it is counted */
#define SCHEMA_TORCH_OP_RECOMPUTED 0x200u /* in a forward that a checkpoint repeats */

/* The highest rate of a device, for the share of it that a program reaches. */
struct schema_torch_peak_row {
	uint64_t ts_ticks;
	double flops; /* per second */
	uint32_t device, dtype, origin; /* names; origin: given, known or measured */
	uint32_t reserved;
};

struct schema_variable_row {
	uint64_t ts_ticks;
	uint32_t step;
	uint32_t thread;
	uint32_t function, name, type; /* names */
	uint32_t reserved;
	char value[96]; /* truncated if longer */
};

/* Between samples where kymo chooses the rate: after the first second, while stacks change. */
#define SCHEMA_SAMPLE_PERIOD_NS 10000000

/* A thread at a moment. The stack is a node of python.frames, whose nodes refer to their callers: a
   known stack costs only this row. */
struct schema_sample_row {
	uint64_t ts_ticks;
	uint32_t stack; /* node of the innermost frame; 0: no Python function ran */
	int32_t pid;
	int32_t tid;
	uint32_t thread_name;
	uint32_t cause; /* a name: "period", "slow zone: step", … */
	uint16_t state; /* a letter, as in /proc/PID/stat */
	uint16_t gil;
	/* The time that the sample stands for: that since the sample before it. 0 if it is not
	   periodic; older recordings lack it. */
	uint64_t weight_ns;
	/* What it did, "socket", and the peer, path or child that it waited for; names. */
	uint32_t activity, waits_for;
};

struct schema_frame_row {
	uint32_t node; /* from 1 */
	uint32_t parent; /* the caller's; 0: none */
	uint32_t name; /* function and file */
	uint32_t line; /* the line that ran; 0: unknown */
};

#define SCHEMA_LOOP_STALL_NS 10000000

/* A callback that an event loop ran for longer than 10 ms. What blocked it is in the samples of its
   thread. */
struct schema_loop_stall_row {
	uint64_t start_ticks;
	uint64_t duration_ticks;
	uint32_t coroutine,
		file; /* names: its function, or the coroutine of its task; 0: not known */
	uint32_t line; /* the first of that function */
	uint32_t task; /* a name, if the program gave one */
	int32_t ready; /* callbacks that waited for its end; -1: not known */
	uint32_t thread;
	uint16_t kind; /* enum schema_loop_kind */
	uint16_t reserved[3];
};
enum schema_loop_kind { SCHEMA_LOOP_ASYNCIO, SCHEMA_LOOP_UVLOOP };

/* A native stack of a thread, on a CPU or waiting. The stack is a node of native.frames. */
struct schema_native_row {
	uint64_t ts_ticks;
	uint32_t stack; /* node of the innermost frame; 0: none could be read */
	int32_t pid;
	int32_t tid;
	uint32_t thread_name;
	uint32_t flags; /* SCHEMA_NATIVE_* */
	int32_t holder; /* the thread that holds the mutex that this one waits for; 0: not known */
	uint64_t weight_ns; /* time that the sample stands for, on a CPU or waiting */
	/* Of a thread that waits: "socket", and the peer, path or child; names. */
	uint32_t activity, waits_for;
};
/* flags of a sample */
#define SCHEMA_NATIVE_COMPLETE 1u /* reaches the function where the thread began */
#define SCHEMA_NATIVE_MERGED 2u /* Python frames are in place of the interpreter's */
#define SCHEMA_NATIVE_APART 4u /* in Python, but its frames are not known to belong to it */
#define SCHEMA_NATIVE_KERNEL 8u /* in a system call, made by the innermost frame */
#define SCHEMA_NATIVE_WAITING 16u /* not on a CPU */

struct schema_native_frame_row {
	uint32_t node; /* from 1 */
	uint32_t parent; /* the caller's; 0: none */
	uint32_t name; /* function, and its source file or else its module */
	uint32_t line; /* 0: unknown, and the name's file is the module */
	uint32_t module; /* a name: the path of the program or library; 0: none */
	uint32_t flags; /* SCHEMA_NATIVE_* */
};
/* flags of a frame */
#define SCHEMA_NATIVE_INLINED 1u /* into its caller */
#define SCHEMA_NATIVE_PYTHON 2u /* a Python function */
#define SCHEMA_NATIVE_COMPILED 4u /* compiled at run time, and in no file */

/* A file in which frames of native stacks are, in a process. */
struct schema_native_module_row {
	uint64_t load_address; /* added to an address of the file */
	int32_t pid;
	uint32_t path, build_id, symbols; /* names */
	uint32_t lines; /* 1: with debug information */
	uint32_t reserved;
};

/* An operation of a device, an execution of a model, or a wait of the host for a queue; in host
   time. */
struct schema_device_op_row {
	uint64_t queued_ticks, submit_ticks, start_ticks, end_ticks;
	uint64_t bytes;
	uint64_t correlation;
	uint64_t zone_start_ticks;
	uint64_t execution;
	uint32_t device, queue, model, name, zone; /* names */
	uint32_t thread; /* the thread that enqueued it */
	uint32_t step;
	uint32_t error_ns; /* of the four times */
	int32_t core;
	int32_t status;
	uint32_t flags; /* KYMO_DEVICE_* of <kymo/device.h>, and SCHEMA_DEVICE_* */
	uint16_t kind; /* enum kymo_device_kind */
	uint16_t reserved;
	uint64_t call_ticks; /* duration of the call that enqueued it; 0: unknown */
	uint32_t module; /* a name: the torch module, if it is not that of a zone; 0: unknown */
	uint32_t call; /* a name: the function that enqueued it; 0: unknown */
};
/* flags: which times are known */
#define SCHEMA_DEVICE_QUEUED 0x100u
#define SCHEMA_DEVICE_SUBMIT 0x200u
#define SCHEMA_DEVICE_START 0x400u
#define SCHEMA_DEVICE_END 0x800u
#define SCHEMA_DEVICE_COMM 0x1000u /* communication, as its arguments or the user say */

/* A collective or a point-to-point call, as one rank saw it. It may have two rows: one when it is
   enqueued, flags without SCHEMA_COLLECTIVE_END, so that one that never ends is known; and one with
   all of it when it has ended. They have the same call; a row whose call is 0 stands alone. */
struct schema_collective_row {
	/* Enqueued by the caller; begun and ended by the worker thread or on the device. The flags
	   tell which are known. */
	uint64_t enqueue_ticks, start_ticks, end_ticks;
	uint64_t seq; /* of the group, equal on all of its ranks; point-to-point: of the pair */
	uint64_t bytes; /* of this rank's input; of the output if there is no input */
	uint64_t call; /* counts calls of the process, from 1; 0: a row that stands alone */
	uint64_t correlation; /* with device.ops; 0: none */
	uint32_t group, op, dtype; /* names; op as "all_reduce", dtype as "float32"; 0: unknown */
	uint32_t members; /* a name: global ranks of the group, "0,1,2,3"; 0: unknown */
	uint32_t zone; /* a name: innermost zone of the caller; 0: none */
	uint32_t thread; /* the thread that enqueued it */
	uint32_t step;
	uint32_t group_size; /* 0: unknown */
	int32_t rank; /* global; -1: that of the process */
	int32_t peer; /* global rank, or the root of a broadcast; -1: none or unknown */
	uint32_t flags; /* SCHEMA_COLLECTIVE_* */
	uint32_t reserved;
};
#define SCHEMA_COLLECTIVE_P2P 1u
#define SCHEMA_COLLECTIVE_ASYNC 2u /* the caller did not wait for its end */
#define SCHEMA_COLLECTIVE_FAILED 4u
/* flags: which times are known */
#define SCHEMA_COLLECTIVE_ENQUEUE 0x100u
#define SCHEMA_COLLECTIVE_START 0x200u
#define SCHEMA_COLLECTIVE_END 0x400u
#define SCHEMA_COLLECTIVE_SEQ 0x800u /* seq is known */
/* It has begun, or ended, at a time that is not known. */
#define SCHEMA_COLLECTIVE_BEGUN 0x1000u
#define SCHEMA_COLLECTIVE_ENDED 0x2000u

struct schema_device_memory_row {
	uint64_t ts_ticks;
	int64_t bytes; /* below 0: freed */
	int64_t live_bytes; /* of the device, afterwards */
	uint32_t device, kind; /* names */
	uint32_t thread, step;
};

/* Both clocks at one moment. */
struct schema_device_clock_row {
	uint64_t ts_ticks;
	uint64_t device_ns;
	double drift_ppm; /* how much faster the device's clock runs */
	int64_t miss_ns; /* error of the prediction from earlier readings */
	uint32_t error_ns; /* half the duration of the reading */
	uint32_t device; /* a name */
};

/* 24 bytes, because there may be very many. */
struct schema_alloc_row {
	uint64_t ts_ticks;
	/* address, 48 bits, with the kind in its lowest three bits; above, 16 bits of the thread */
	uint64_t place;
	/* size, 40 bits; above, 24 bits of the stack's node. BEGAN: the mean of samples, 0:
	   exact */
	uint64_t what;
};
#define SCHEMA_ALLOC_KIND_MASK 7u
#define SCHEMA_ALLOC_FREE_BIT 1u /* of the kind: a free */
#define SCHEMA_ALLOC_PTR_MASK 0xfffffffffff8ull
#define SCHEMA_ALLOC_THREAD_SHIFT 48
#define SCHEMA_ALLOC_SIZE_MASK 0xffffffffffull
#define SCHEMA_ALLOC_NODE_SHIFT 40
enum schema_alloc_kind {
	SCHEMA_ALLOC_EXACT,
	SCHEMA_FREE_EXACT,
	SCHEMA_ALLOC_SAMPLED, /* represents more than one */
	SCHEMA_FREE_SAMPLED,
	SCHEMA_ALLOC_CHANGED, /* new mode, as in BEGAN; live bytes continue */
	SCHEMA_ALLOC_BEGAN, /* recording begins; live bytes count from 0 */
	SCHEMA_ALLOC_ENDED, /* recording ends */
};

/* NULL if the id has no table. */
const struct schema_table *schema_get(enum schema_id id);
/* By name; NULL: not a table of kymo. */
const struct schema_table *schema_find(const char *name);
/* Letters, digits and _, not starting with a digit: the parts of a table's name, and columns. */
bool schema_is_word(const char *text, size_t bytes);
/* Width of a type in a row; 0 for KYMO_TEXT, whose column defines it, and for an unknown type. */
size_t schema_type_bytes(uint32_t type);
/* "c", "python", …; "?" if unknown to this version. */
const char *schema_source_word(uint32_t source);

#endif
