/*
 * libkymo_opencl.so: a layer between a program and its OpenCL runtime, loaded by the ICD loader
 * (OPENCL_LAYERS). The program gets the same objects, results and errors as without it; device
 * operations are reported to kymo (<kymo/device.h>).
 *
 *	layer.c     the table of functions       enqueue.c   calls that enqueue
 *	objects.c   queues, kernels, programs    pending.c   operations until they are done
 *	memory.c    buffers and SVM              clock.c     the clock of a device's times
 *	cost.c      the cost of recording
 *
 * No threads, no malloc, and no locks that block (except briefly, for a new device). Everything has
 * a fixed size; what does not fit is not recorded, and counted.
 */
#ifndef KYMO_RECORD_OPENCL_LAYER_H
#define KYMO_RECORD_OPENCL_LAYER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_layer.h>

#include <kymo/device.h>

/* The next layer, or the runtime. */
extern cl_icd_dispatch next;

/* ---- objects.c --------------------------------------------------------------------------- */

/* Values by address, without locks. A key belongs to one thread at a time: the creator or last
   owner of its object. */
struct map;
void map_put(struct map *map, const void *key, uint64_t value);
uint64_t map_get(const struct map *map, const void *key); /* 0: none */
uint64_t map_take(struct map *map, const void *key); /* removes it */
extern struct map svm_map;

enum clock_mode {
	CLOCK_UNDECIDED, /* until the first operation */
	CLOCK_TIMER, /* clGetDeviceAndHostTimer() */
	CLOCK_HOST, /* a clock of the host: clock_id */
	CLOCK_BRACKET, /* unknown: queued lies within the call that enqueued */
};

#define HOST_CLOCKS 4

/* A host clock when the device was first seen. */
struct clock_reading {
	uint64_t ticks, ns, error_ns;
};

struct layer_device {
	cl_device_id handle;
	uint32_t id; /* in the recording */
	uint32_t mode; /* enum clock_mode; atomic */
	int clock_id; /* atomic */
	/* consecutive operations whose queued time contradicts the clock; atomic */
	uint32_t misses;
	uint64_t paired_ticks; /* CLOCK_BRACKET: time of the last pair; atomic */
	struct clock_reading begun[HOST_CLOCKS];
};

struct layer_device *device_at(uint32_t local);

struct node;
#define ASKED_MOST 24

/* Never freed: pending operations and callbacks refer to it. */
struct layer_queue {
	uint32_t id; /* in the recording */
	uint32_t refs; /* the program's references; atomic; 0: may be reused */
	struct layer_device *device; /* atomic while it is created; stored last */
	bool ordered; /* operations end in the order in which they were enqueued */
	bool added; /* profiling was added; hidden from the program */
	bool timed; /* its events have times */
	cl_command_queue_properties asked;
	cl_queue_properties asked_list[ASKED_MOST]; /* as given, with the terminating 0 */
	size_t asked_words; /* 0: no list */
	struct node *fresh; /* newest first: pushed by any thread; atomic */
	struct node *first, *last; /* oldest first: owned by the thread that holds busy */
	uint32_t busy; /* the checker of finished operations (pending.c); 0: none; atomic */
	uint32_t pending; /* atomic */
	uint64_t looked_ticks; /* atomic */
	/* since when a thread waits for it; that thread checks afterwards; 0: none; atomic */
	uint64_t waiting_ticks;
};

struct layer_kernel {
	uint32_t name;
	uint32_t model;
};

struct layer_queue *queue_of(cl_command_queue queue); /* NULL: unknown */
struct layer_queue *queue_at(uint32_t index); /* NULL: no more */
struct layer_kernel kernel_of(cl_kernel kernel);
struct layer_device *device_of(cl_device_id device); /* NULL: too many */
struct layer_device *device_of_context(cl_context context);
void objects_hook(cl_icd_dispatch *table);

/* ---- memory.c, clock.c, enqueue.c ---------------------------------------------------------- */

void memory_hook(cl_icd_dispatch *table);
uint64_t svm_bytes(const void *at); /* bytes that clSVMAlloc() allocated there; 0: unknown */
void enqueue_hook(cl_icd_dispatch *table);

/* Reads the clock of a device, for kymo. */
int clock_now(void *context, uint32_t local, uint64_t *out_ns);
void clock_begin(struct layer_device *device);
/* Determines the device's clock, or verifies it: queued_ns was between the two ticks. */
void clock_settle(struct layer_device *device, uint64_t queued_ns, uint64_t before_ticks,
		  uint64_t after_ticks);

/* ---- cost.c ------------------------------------------------------------------------------ */

uint64_t cost_begin(void); /* of a call or wait: now, or 0 if this one is not measured */
void cost_call(uint64_t ticks); /* the layer's share of a call */
void cost_look(uint64_t ticks); /* time to check for finished operations */

/* ---- pending.c --------------------------------------------------------------------------- */

/* A call that enqueues. node NULL: not recorded. */
struct call {
	struct node *node;
	struct layer_queue *queue;
	cl_event own;
	struct kymo_zone zone; /* while it blocks */
	uint64_t wait_ticks;
	uint64_t begun; /* ticks, if its cost is measured; else 0 */
	bool waits;
};

/* Around the call: begin, the program's event or our own, end. They do nothing while devices are
   not recorded. */
void call_begin(struct call *call, cl_command_queue queue, enum kymo_device_kind kind,
		uint64_t bytes, bool depends);
void call_kernel(struct call *call, cl_kernel kernel);
void call_waits(struct call *call, cl_bool blocking, const char *name);
cl_event *call_event(struct call *call, cl_event *event);
cl_int call_end(struct call *call, cl_int rc, const cl_event *event);

/* The host waits for a queue (NULL: for events of any), or polls it. */
struct waiting {
	struct layer_queue *queue;
	struct kymo_device_op op;
	struct kymo_zone zone;
	bool on;
};
void wait_begin(struct waiting *waiting, struct layer_queue *queue, const char *name);
void wait_end(struct waiting *waiting); /* also records finished operations */

/* Records the finished operations of one queue or of all. Never blocks. */
void pending_look(struct layer_queue *queue);
void pending_look_all(void);
/* Our references to that event. */
uint32_t pending_refs(cl_event event);
void pending_flush(void *context);

#endif
