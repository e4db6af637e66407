/*
 * Devices: the operations of an accelerator, reported by the code that drives it. For adapters of a
 * runtime (OpenCL, CUDA, a vendor's model runtime), not for programs.
 *
 *	static const struct kymo_device_adapter adapter = {
 *		sizeof(adapter), "mine", NULL, read_device_clock, flush
 *	};
 *
 *	device = kymo_device_add(&adapter, 0, "card 0");
 *	queue = kymo_device_queue_add(device, "stream 7", KYMO_DEVICE_NEXT_CORE);
 *	model = kymo_device_model_add("resnet50");
 *	...
 *	kymo_device_launch(&op.launch);		// in the enqueuing thread, when it enqueues
 *	...					// later, in any thread, when the times are known
 *	op.start = ...; op.end = ...;		// by the device's own clock
 *	kymo_device_op(&op);
 *
 * kymo reads the device's clock at intervals, relates it to the host's, and writes operations in
 * host time together with the error of the conversion. The tables are device.ops, device.queues,
 * device.models, device.memory and device.clocks. docs/devices.md maps the activity records of
 * CUPTI and of a model runtime to this API; src/record/device/device_fake.c is an adapter of 100
 * lines.
 *
 * No call blocks, exits or allocates with malloc. Rows that cannot be recorded are dropped and
 * counted. All calls are thread-safe and work after fork. Calls with an id of 0 or NULL do
 * nothing.
 */
#ifndef KYMO_DEVICE_H
#define KYMO_DEVICE_H

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- on and off -------------------------------------------------------------------------- */

/* `kymo run --device`, KYMO_DEVICE=on, `kymo config PID device=on`, or kymo_device_enable(). */
static inline bool kymo_device_enabled(void)
{
	return kymo__is_on(KYMO_ON_DEVICE) != 0;
}
/* Turns recording on, including devices. Returns 0, or a negative errno and *err, like
   kymo_enable(). */
KYMO__EXPORT int kymo_device_enable(struct kymo_error *err);
KYMO__EXPORT void kymo_device_disable(void);

/* ---- devices, queues, models -------------------------------------------------------------- */

struct kymo_device_adapter {
	size_t bytes; /* sizeof(struct kymo_device_adapter) */
	const char *name; /* "opencl": static text */
	void *context; /* passed to the functions below */
	/* Reads the device's clock, in ns from any origin. Returns 0, or non-zero if it cannot be
	   read. Called by the thread that reports an operation, at most every 100 ms per device.
	   NULL: device times are CLOCK_MONOTONIC. */
	int (*now)(void *context, uint32_t local, uint64_t *out_ns);
	/* Reports all finished operations. Called before a capture is written. May be NULL. */
	void (*flush)(void *context);
};

#define KYMO_DEVICES_MAX 64
#define KYMO_DEVICE_QUEUES_MAX 4096
#define KYMO_DEVICE_MODELS_MAX 4096
#define KYMO_DEVICE_NEXT_CORE UINT32_MAX

/* Returns an id, counting from 1. 0: the table or the name table is full, and operations with this
   id are not recorded. Ids are never reused: a queue that is released and created again is a new
   one. local is the adapter's own number of the device. The adapter struct must stay valid. Also
   works while recording is off; names are then interned at the first operation. */
KYMO__EXPORT uint32_t kymo_device_add(const struct kymo_device_adapter *adapter, uint32_t local,
				      const char *name);
/* core: the number of the core, or KYMO_DEVICE_NEXT_CORE to number the process's queues from 0 in
   order of creation. name NULL: "queue N", where N is the core. */
KYMO__EXPORT uint32_t kymo_device_queue_add(uint32_t device, const char *name, uint32_t core);
/* A model, program or module that executes as a unit. Equal names give the same model. */
KYMO__EXPORT uint32_t kymo_device_model_add(const char *name);
KYMO__EXPORT uint32_t kymo_device_queue_core(uint32_t queue); /* UINT32_MAX: no such queue */
KYMO__EXPORT const char *kymo_device_model_name(uint32_t model); /* "" : no such model */
KYMO__EXPORT const char *kymo_device_queue_name(uint32_t queue); /* "": no such queue */
KYMO__EXPORT const char *kymo_device_queue_device(uint32_t queue); /* device name; "": no queue */

/* ---- operations -------------------------------------------------------------------------- */

/* One list for the enum, the words of device.ops.kind and the docs. EXECUTION is one execution of a
   model and may contain operations. WAIT is the host waiting for the queue, in host time. MODULE is
   a part of an execution, from its first operation to its last. */
#define KYMO_DEVICE_KINDS(X) \
	X(KERNEL, "kernel") \
	X(READ, "read") \
	X(WRITE, "write") \
	X(COPY, "copy") \
	X(FILL, "fill") \
	X(MAP, "map") \
	X(UNMAP, "unmap") \
	X(MIGRATE, "migrate") \
	X(MARKER, "marker") \
	X(BARRIER, "barrier") \
	X(NATIVE, "native") \
	X(OTHER, "other") \
	X(EXECUTION, "execution") \
	X(WAIT, "wait") \
	X(MODULE, "module")
enum kymo_device_kind {
#define X(upper, word) KYMO_DEVICE_##upper,
	KYMO_DEVICE_KINDS(X)
#undef X
		KYMO_DEVICE_KIND_COUNT
};

#define KYMO_DEVICE_NO_TIME UINT64_MAX

/* The host's state when it enqueues an operation. Fill it at that moment; it costs 30 ns. */
struct kymo_device_launch {
	uint64_t ticks; /* kymo_ticks() */
	uint64_t zone_start_ticks; /* of the thread's innermost open zone */
	uint32_t zone; /* name of that zone; 0: none was open */
	uint32_t thread;
	uint32_t step;
	uint32_t reserved;
};
KYMO__EXPORT void kymo_device_launch(struct kymo_device_launch *out);

/* Flags of an operation. */
#define KYMO_DEVICE_DEPENDS 1u /* it depends on other operations, of any queue */
#define KYMO_DEVICE_HOST_TICKS 2u /* its times are kymo_ticks(), not the device's clock */
#define KYMO_DEVICE_BLOCKING 4u /* the enqueuing call waited for its end */
#define KYMO_DEVICE_DEPTH(n) ((uint32_t)(n) << 16) /* nesting depth of a module, 0 to 255 */

struct kymo_device_op {
	size_t bytes; /* sizeof(struct kymo_device_op) */
	uint32_t queue;
	uint32_t model; /* 0: none */
	enum kymo_device_kind kind;
	uint32_t name; /* kymo_name(); 0: use the kind's word */
	/* By the device's clock, in ns; KYMO_DEVICE_NO_TIME: unknown. */
	uint64_t queued, submit, start, end;
	uint64_t moved_bytes;
	/* the adapter's own number, such as CUPTI's correlation id; 0: none */
	uint64_t correlation;
	struct kymo_device_launch launch; /* all 0: unknown, and so is queued */
	uint64_t execution; /* number of the execution that contains it; 0: none */
	int32_t status; /* 0: success; else the runtime's error, and end may be unknown */
	uint32_t flags; /* KYMO_DEVICE_* */
	uint64_t error_ns; /* error of the times themselves; that of the conversion is added */
	uint64_t call_ticks; /* duration of the call that enqueued it; 0: unknown */
	uint32_t call; /* kymo_name() of the function that enqueued it; 0: unknown */
	uint32_t reserved;
};
/* Returns 0, also while devices are not recorded; -EINVAL; -EAGAIN: dropped and counted. */
KYMO__EXPORT int kymo_device_op(const struct kymo_device_op *op);

/* A callback that sums up operations in this process. Called for each recorded operation with known
   start and end, in host ticks, on the thread that reports it, which may belong to a driver. One
   callback per process; NULL removes it. */
typedef void kymo_device_watcher(uint32_t queue, enum kymo_device_kind kind, uint64_t start_ticks,
				 uint64_t end_ticks);
KYMO__EXPORT void kymo_device_watch(kymo_device_watcher *watcher);

/* Records device memory: bytes allocated, or freed if negative. kind is a static text: "buffer",
   "image", "svm". */
KYMO__EXPORT int kymo_device_memory(uint32_t device, const char *kind, int64_t bytes);
/* The same at another time than now; at_ticks 0: now. */
KYMO__EXPORT int kymo_device_memory_at(uint32_t device, const char *kind, int64_t bytes,
				       uint64_t at_ticks);

/* ---- clocks ------------------------------------------------------------------------------ */

/* Converts a device time to host ticks, with its error. Interpolates between two readings of both
   clocks; extrapolates after the last at the latest rate. Returns 0; -ENOENT: the device's clock
   was never read. */
KYMO__EXPORT int kymo_device_align(uint32_t device, uint64_t device_ns, uint64_t *out_ticks,
				   uint64_t *out_error_ns);
/* Reads both clocks now. Returns 0 or a negative errno. */
KYMO__EXPORT int kymo_device_sync(uint32_t device);
/* The same with a pair that the adapter read: host_ticks is within error_ns of device_ns. */
KYMO__EXPORT int kymo_device_sync_pair(uint32_t device, uint64_t device_ns, uint64_t host_ticks,
				       uint64_t error_ns);

/* Calls flush of all adapters: before a snapshot or a capture (<kymo/capture.h>) is written. */
KYMO__EXPORT void kymo_device_flush(void);

/* ---- the fake device ---------------------------------------------------------------------- */

/* A simulated device with its own clock, for tests and as an example of an adapter. Operations take
   exactly the given time, one after another on each core. */
struct kymo_fake_options {
	size_t bytes; /* sizeof(struct kymo_fake_options) */
	const char *name; /* NULL: "fake" */
	uint32_t cores; /* 0: 1; at most 64 */
	int64_t offset_ns; /* of its clock from CLOCK_MONOTONIC */
	double drift_ppm; /* how much faster its clock runs than CLOCK_MONOTONIC */
	uint64_t launch_ns; /* from submission to start */
};
/* Returns NULL beyond 16 devices per process. Never freed. NULL options: all 0. */
KYMO__EXPORT struct kymo_fake *kymo_fake_open(const struct kymo_fake_options *options);
KYMO__EXPORT uint32_t kymo_fake_device(const struct kymo_fake *fake); /* kymo's id */
KYMO__EXPORT uint32_t kymo_fake_queue(const struct kymo_fake *fake, uint32_t core);
/* The current time of its clock. */
KYMO__EXPORT uint64_t kymo_fake_now(const struct kymo_fake *fake);
/* Enqueues an operation that takes duration_ns. It is recorded at once. Returns its end by the
   device's clock, which is in the future. */
KYMO__EXPORT uint64_t kymo_fake_enqueue(struct kymo_fake *fake, uint32_t core,
					enum kymo_device_kind kind, const char *name,
					uint32_t model, uint64_t moved_bytes, uint64_t duration_ns);
/* One execution of a model: `kernels` operations of kernel_ns each, one after another, and the
   execution that contains them. */
KYMO__EXPORT uint64_t kymo_fake_execute(struct kymo_fake *fake, uint32_t core, uint32_t model,
					uint32_t kernels, uint64_t kernel_ns);
/* Sleeps until the core is idle; recorded as a wait. */
KYMO__EXPORT void kymo_fake_wait(struct kymo_fake *fake, uint32_t core);

#ifdef __cplusplus
}
#endif

#endif
