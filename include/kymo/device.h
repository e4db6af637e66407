/*
 * Devices: what an accelerator did, told to kymo by the code that drives it. For adapters of a
 * runtime (OpenCL, CUDA, a vendor's model runtime), not for programs.
 *
 *	static const struct kymo_device_adapter adapter = { sizeof(adapter), "mine", NULL, read_device_clock, flush };
 *
 *	device = kymo_device_add(&adapter, 0, "card 0");
 *	queue = kymo_device_queue_add(device, "stream 7", KYMO_DEVICE_NEXT_CORE);
 *	model = kymo_device_model_add("resnet50");
 *	...
 *	kymo_device_launch(&op.launch);			// in the thread that enqueues, when it does
 *	...						// later, from any thread, when the device has told
 *	op.start = ...; op.end = ...;			// by the device's own clock
 *	kymo_device_op(&op);
 *
 * kymo reads the device's clock now and then, relates it to the host's, and writes the operation in
 * times of the host, with the error that they have: device.ops, device.queues, device.models,
 * device.memory, device.clocks in SQL. docs/devices.md says how the activity records of CUPTI and a
 * model runtime map to it; src/record/device/device_fake.c is an adapter of 100 lines.
 *
 * As everything of kymo: no call blocks, exits or allocates with malloc; what cannot be recorded is
 * dropped and counted; all are safe in threads and after fork. Each takes a 0 or a NULL and then
 * does nothing.
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
/* Turns recording on, and that of devices. 0, or a negative errno and *err, as kymo_enable(). */
KYMO__EXPORT int kymo_device_enable(struct kymo_error *err);
KYMO__EXPORT void kymo_device_disable(void);

/* ---- devices, queues, models -------------------------------------------------------------- */

struct kymo_device_adapter {
	size_t bytes; /* sizeof(struct kymo_device_adapter) */
	const char *name; /* "opencl": static text */
	void *context; /* handed to the functions below */
	/* The device's clock now, in ns from whenever: 0, or anything else where it cannot be read.
	   Called by the thread that tells of an operation, at most every 100 ms for a device. NULL:
	   the device's times are CLOCK_MONOTONIC's. */
	int (*now)(void *context, uint32_t local, uint64_t *out_ns);
	/* Tells now of all operations that are done: called before a capture is written. May be
	   NULL. */
	void (*flush)(void *context);
};

#define KYMO_DEVICES_MAX 64
#define KYMO_DEVICE_QUEUES_MAX 4096
#define KYMO_DEVICE_MODELS_MAX 4096
#define KYMO_DEVICE_NEXT_CORE UINT32_MAX

/* Ids count from 1; 0: the table is full, or nothing could be named, and operations of it are not
   recorded. Nothing is ever taken away: a queue that is released and made again is a new one. local
   is the adapter's own number of the device. The adapter struct must stay. Works while recording is
   off, too: names are then given at the first operation. */
KYMO__EXPORT uint32_t kymo_device_add(const struct kymo_device_adapter *adapter, uint32_t local,
				      const char *name);
/* core: the number of the core, or KYMO_DEVICE_NEXT_CORE: queues of the process in the order of
   their creation, from 0. name NULL: "queue N", N the core. */
KYMO__EXPORT uint32_t kymo_device_queue_add(uint32_t device, const char *name, uint32_t core);
/* A model, program or module: what executes as a whole. The same name gives the same model. */
KYMO__EXPORT uint32_t kymo_device_model_add(const char *name);
KYMO__EXPORT uint32_t kymo_device_queue_core(uint32_t queue); /* UINT32_MAX: no such queue */
KYMO__EXPORT const char *kymo_device_model_name(uint32_t model); /* "" : no such model */
KYMO__EXPORT const char *kymo_device_queue_name(uint32_t queue); /* "": no such queue */
KYMO__EXPORT const char *kymo_device_queue_device(uint32_t queue); /* its device's name, likewise */

/* ---- operations -------------------------------------------------------------------------- */

/* One list: the enum, the words of device.ops.kind and the docs. EXECUTION is a model's run as a
   whole, which may have operations inside of it; WAIT is the host waiting for the queue, in times
   of the host; MODULE is a span of a model's run, from the first of its operations to the last. */
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

/* What the host was doing when it enqueued: fill it there and then, 30 ns. */
struct kymo_device_launch {
	uint64_t ticks; /* kymo_ticks() */
	uint64_t zone_start_ticks; /* of the thread's innermost open zone */
	uint32_t zone; /* its name; 0: none was open */
	uint32_t thread;
	uint32_t step;
	uint32_t reserved;
};
KYMO__EXPORT void kymo_device_launch(struct kymo_device_launch *out);

#define KYMO_DEVICE_DEPENDS 1u /* flags: it had to wait for other operations, of any queue */
#define KYMO_DEVICE_HOST_TICKS 2u /* flags: its times are kymo_ticks(), not the device's clock */
#define KYMO_DEVICE_BLOCKING 4u /* flags: the call that enqueued it waited for its end */
#define KYMO_DEVICE_DEPTH(n) \
	((uint32_t)(n) << 16) /* flags: of a module, how many others it is inside of; to 255 */

struct kymo_device_op {
	size_t bytes; /* sizeof(struct kymo_device_op) */
	uint32_t queue;
	uint32_t model; /* 0: none */
	enum kymo_device_kind kind;
	uint32_t name; /* kymo_name(); 0: the kind's word serves */
	/* By the device's clock, in ns; KYMO_DEVICE_NO_TIME where it is not known. */
	uint64_t queued, submit, start, end;
	uint64_t moved_bytes;
	uint64_t correlation; /* the adapter's own number, as CUPTI's correlation id; 0: none */
	struct kymo_device_launch launch; /* all 0: not known; queued is then not known either */
	uint64_t execution; /* number of the execution that it is a part of; 0: none */
	int32_t status; /* 0: done well; else the runtime's error, and end may be missing */
	uint32_t flags; /* KYMO_DEVICE_* */
	uint64_t error_ns; /* of times that are KYMO_DEVICE_HOST_TICKS */
};
/* 0, also while devices are not recorded; -EINVAL; -EAGAIN: dropped and counted. */
KYMO__EXPORT int kymo_device_op(const struct kymo_device_op *op);

/* For one who sums operations up in this process: told of each that is recorded and has a beginning
   and an end, as ticks of the host, by the thread that tells kymo, which may be one of a driver.
   One in a process; NULL: nobody. */
typedef void kymo_device_watcher(uint32_t queue, enum kymo_device_kind kind, uint64_t start_ticks,
				 uint64_t end_ticks);
KYMO__EXPORT void kymo_device_watch(kymo_device_watcher *watcher);

/* Memory of a device: bytes allocated, or, below 0, freed. kind: "buffer", "image", "svm"; static
   text. */
KYMO__EXPORT int kymo_device_memory(uint32_t device, const char *kind, int64_t bytes);

/* ---- clocks ------------------------------------------------------------------------------ */

/* A device's time as ticks of the host, and the error that it has; 0, or -ENOENT for a device whose
   clock was never read. Between two readings of both clocks it is interpolated, after the last one
   carried on at the rate of late. */
KYMO__EXPORT int kymo_device_align(uint32_t device, uint64_t device_ns, uint64_t *out_ticks,
				   uint64_t *out_error_ns);
/* Relates both clocks now, whatever the last time was; 0 or a negative errno. */
KYMO__EXPORT int kymo_device_sync(uint32_t device);
/* The same with what the adapter read itself: ticks of the host within error_ns of the device's
   device_ns. */
KYMO__EXPORT int kymo_device_sync_pair(uint32_t device, uint64_t device_ns, uint64_t host_ticks,
				       uint64_t error_ns);

/* Tells all adapters to deliver what is done: before a snapshot or a capture (<kymo/capture.h>) is
   written. */
KYMO__EXPORT void kymo_device_flush(void);

/* ---- the fake device ---------------------------------------------------------------------- */

/* A device that is not there, with a clock of its own: for tests, and an example of an adapter.
   Operations take exactly as long as they are told to, one after another on each core. */
struct kymo_fake_options {
	size_t bytes; /* sizeof(struct kymo_fake_options) */
	const char *name; /* NULL: "fake" */
	uint32_t cores; /* 0: 1; at most 64 */
	int64_t offset_ns; /* of its clock, to CLOCK_MONOTONIC */
	double drift_ppm; /* how much faster its clock runs */
	uint64_t launch_ns; /* from submission to start */
};
/* At most 16 in a process, never freed; NULL: no more. NULL options: all 0. */
KYMO__EXPORT struct kymo_fake *kymo_fake_open(const struct kymo_fake_options *options);
KYMO__EXPORT uint32_t kymo_fake_device(const struct kymo_fake *fake); /* kymo's id */
KYMO__EXPORT uint32_t kymo_fake_queue(const struct kymo_fake *fake, uint32_t core);
/* Now by its clock. */
KYMO__EXPORT uint64_t kymo_fake_now(const struct kymo_fake *fake);
/* Enqueues an operation that takes duration_ns: recorded at once, ends in time to come. When, by
   the device's clock. */
KYMO__EXPORT uint64_t kymo_fake_enqueue(struct kymo_fake *fake, uint32_t core,
					enum kymo_device_kind kind, const char *name,
					uint32_t model, uint64_t moved_bytes, uint64_t duration_ns);
/* A model's run: kernels operations of kernel_ns each, one after another, and the execution that
   holds them. */
KYMO__EXPORT uint64_t kymo_fake_execute(struct kymo_fake *fake, uint32_t core, uint32_t model,
					uint32_t kernels, uint64_t kernel_ns);
/* Sleeps until the core is done: recorded as a wait. */
KYMO__EXPORT void kymo_fake_wait(struct kymo_fake *fake, uint32_t core);

#ifdef __cplusplus
}
#endif

#endif
