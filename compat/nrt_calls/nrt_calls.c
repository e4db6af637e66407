/*
 * libkymo_nrt.so: the calls of a program to the Neuron runtime, libnrt.so.1, recorded as operations
 * of a device. `kymo run --device` preloads it where that library is installed. Each function here
 * has the name of one of the runtime's, calls it and returns its result.
 *
 * The runtime that kymo offers under the same names (-lnrt of kymo-nrt) records itself: its calls
 * are passed on and nothing is recorded twice.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <kymo/device.h>

#define RUNTIME "libnrt.so.1"
#define OWN_RUNTIME "libkymo_compat.so"
#define FAILURE 1 /* NRT_FAILURE */
#define CORES_MOST 128u
#define MODELS_MOST 1024u

/* ---- the functions of the runtime ---- */

struct real {
	const char *name;
	void *function; /* NULL: not looked up yet; atomic */
	bool is_own; /* of kymo's own runtime; written before function */
};

static bool is_own_runtime(const void *function)
{
	Dl_info info;

	return dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, OWN_RUNTIME);
}

/* The next one in the order of the loader; of a library that was loaded privately, by a handle. */
static void *nrt_calls_find(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);
	void *library;

	if (function)
		return function;
	library = dlopen(RUNTIME, RTLD_LAZY | RTLD_NOLOAD);
	return library ? dlsym(library, name) : NULL;
}

static void *nrt_calls_real_of(struct real *real)
{
	void *function = kymo__load_acquire(&real->function);

	if (function)
		return function;
	function = nrt_calls_find(real->name);
	if (function) {
		real->is_own = is_own_runtime(function);
		kymo__store_release(&real->function, function);
	}
	return function;
}

/* Declares a function of the runtime, and `real`, the pointer to it; returns where it is absent. */
#define REAL(type, text, without) \
	static struct real found = { text, NULL, false }; \
	type real = (type)nrt_calls_real_of(&found); \
	if (!real) \
	return without

static bool is_recorded(const struct real *real)
{
	return kymo_device_enabled() && !real->is_own;
}

/* ---- devices, cores, models ---- */

struct nrt_model;
struct nrt_tensor;
struct nrt_tensor_set;

static const struct kymo_device_adapter adapter = { sizeof(adapter), "nrt", NULL, NULL, NULL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t device, queues[CORES_MOST], loaded;
static struct loaded_model {
	const struct nrt_model *model; /* NULL: free */
	uint32_t id, queue;
} models[MODELS_MOST];

static void nrt_calls_after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void nrt_calls_on_load(void)
{
	pthread_atfork(NULL, NULL, nrt_calls_after_fork_in_child);
}

/* The lock is held. */
static uint32_t core_queue(int32_t core)
{
	uint32_t number = core > 0 ? (uint32_t)core % CORES_MOST : 0;
	char name[32];

	if (!device)
		device = kymo_device_add(&adapter, 0, "neuron");
	if (!queues[number]) {
		snprintf(name, sizeof(name), "core %u", number);
		queues[number] = kymo_device_queue_add(device, name, number);
	}
	return queues[number];
}

static uint32_t nrt_calls_queue_of(int32_t core)
{
	uint32_t queue;

	pthread_mutex_lock(&lock);
	queue = core_queue(core);
	pthread_mutex_unlock(&lock);
	return queue;
}

/* An address may be that of an earlier model. */
static struct loaded_model model_keep(const struct nrt_model *model, size_t bytes, int32_t core)
{
	struct loaded_model kept = { model, 0, 0 };
	char name[64];

	pthread_mutex_lock(&lock);
	snprintf(name, sizeof(name), "model %u (%zu bytes)", ++loaded, bytes);
	kept.id = kymo_device_model_add(name);
	kept.queue = core_queue(core);
	for (size_t i = 0; i < MODELS_MOST; i++)
		if (!models[i].model || models[i].model == model) {
			models[i] = kept;
			break;
		}
	pthread_mutex_unlock(&lock);
	return kept;
}

static struct loaded_model model_of(const struct nrt_model *model, bool forget)
{
	struct loaded_model found = { NULL, 0, 0 };

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MODELS_MOST && !found.model; i++)
		if (models[i].model == model) {
			found = models[i];
			if (forget)
				models[i].model = NULL;
		}
	if (!found.queue) /* loaded while recording was off */
		found.queue = core_queue(0);
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- one call ---- */

/* A call that the runtime makes itself is a part of the program's. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

struct call {
	struct kymo_device_op op;
	struct kymo_zone zone;
	bool is_recorded;
};

/* A zone, too: a call that hangs is among the open zones. */
static void nrt_calls_call_begin(struct call *call, const struct real *real,
				 enum kymo_device_kind kind)
{
	uint32_t name;

	memset(call, 0, sizeof(*call));
	call->is_recorded = is_recorded(real) && !inside;
	if (!call->is_recorded)
		return;
	inside = true;
	name = kymo_name_full(real->name, strlen(real->name), RUNTIME, strlen(RUNTIME), 0,
			      KYMO_SOURCE_DEVICE, 0);
	call->op.bytes = sizeof(call->op);
	call->op.kind = kind;
	call->op.name = name;
	kymo_device_launch(&call->op.launch);
	call->zone = kymo_zone_begin_id(name);
	call->op.queued = call->op.submit = call->op.start = kymo_ticks();
}

static void nrt_calls_call_end(struct call *call, uint32_t queue, uint32_t model, uint64_t bytes,
			       int status)
{
	if (!call->is_recorded)
		return;
	inside = false;
	call->op.end = kymo_ticks();
	kymo_zone_end(&call->zone);
	call->op.queue = queue;
	call->op.model = model;
	call->op.moved_bytes = bytes;
	call->op.status = status;
	call->op.flags = KYMO_DEVICE_HOST_TICKS | KYMO_DEVICE_BLOCKING;
	kymo_device_op(&call->op);
}

/* ---- models ---- */

typedef int load_function(const void *, size_t, int32_t, int32_t, struct nrt_model **);
typedef int load_collectives_function(const void *, size_t, int32_t, int32_t, uint32_t, uint32_t,
				      struct nrt_model **);
typedef int unload_function(struct nrt_model *);
typedef int execute_function(struct nrt_model *, const struct nrt_tensor_set *,
			     struct nrt_tensor_set *);
typedef int repeat_function(struct nrt_model *, const struct nrt_tensor_set *,
			    struct nrt_tensor_set *, int);

static void load_end(struct call *call, int status, struct nrt_model *const *model, size_t bytes,
		     int32_t core)
{
	struct loaded_model kept = { NULL, 0, 0 };

	if (!call->is_recorded)
		return;
	if (!status && model && *model)
		kept = model_keep(*model, bytes, core);
	nrt_calls_call_end(call, kept.queue ? kept.queue : nrt_calls_queue_of(core), kept.id, bytes,
			   status);
}

KYMO__EXPORT load_function nrt_calls_load __asm__("nrt_load");
int nrt_calls_load(const void *neff, size_t bytes, int32_t core, int32_t cores,
		   struct nrt_model **model)
{
	struct call call;
	int status;

	REAL(load_function *, "nrt_load", FAILURE);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_WRITE);
	status = real(neff, bytes, core, cores, model);
	load_end(&call, status, model, bytes, core);
	return status;
}

KYMO__EXPORT load_collectives_function nrt_calls_load_collectives __asm__("nrt_load_collectives");
int nrt_calls_load_collectives(const void *neff, size_t bytes, int32_t core, int32_t cores,
			       uint32_t number, uint32_t count, struct nrt_model **model)
{
	struct call call;
	int status;

	REAL(load_collectives_function *, "nrt_load_collectives", FAILURE);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_WRITE);
	status = real(neff, bytes, core, cores, number, count, model);
	load_end(&call, status, model, bytes, core);
	return status;
}

KYMO__EXPORT unload_function nrt_calls_unload __asm__("nrt_unload");
int nrt_calls_unload(struct nrt_model *model)
{
	struct loaded_model known = { NULL, 0, 0 };
	struct call call;
	int status;

	REAL(unload_function *, "nrt_unload", FAILURE);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_OTHER);
	if (call.is_recorded)
		known = model_of(model, true);
	status = real(model);
	nrt_calls_call_end(&call, known.queue, known.id, 0, status);
	return status;
}

KYMO__EXPORT execute_function nrt_calls_execute __asm__("nrt_execute");
int nrt_calls_execute(struct nrt_model *model, const struct nrt_tensor_set *in,
		      struct nrt_tensor_set *out)
{
	struct loaded_model known = { NULL, 0, 0 };
	struct call call;
	int status;

	REAL(execute_function *, "nrt_execute", FAILURE);
	if (is_recorded(&found))
		known = model_of(model, false);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_EXECUTION);
	status = real(model, in, out);
	nrt_calls_call_end(&call, known.queue, known.id, 0, status);
	return status;
}

KYMO__EXPORT repeat_function nrt_calls_execute_repeat __asm__("nrt_execute_repeat");
int nrt_calls_execute_repeat(struct nrt_model *model, const struct nrt_tensor_set *in,
			     struct nrt_tensor_set *out, int times)
{
	struct loaded_model known = { NULL, 0, 0 };
	struct call call;
	int status;

	REAL(repeat_function *, "nrt_execute_repeat", FAILURE);
	if (is_recorded(&found))
		known = model_of(model, false);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_EXECUTION);
	status = real(model, in, out, times);
	nrt_calls_call_end(&call, known.queue, known.id, 0, status);
	return status;
}

/* ---- tensors ---- */

typedef int allocate_function(int, int, size_t, const char *, struct nrt_tensor **);
typedef void free_function(struct nrt_tensor **);
typedef int read_function(const struct nrt_tensor *, void *, size_t, size_t);
typedef int write_function(struct nrt_tensor *, const void *, size_t, size_t);
#define ON_DEVICE 0 /* NRT_TENSOR_PLACEMENT_DEVICE */
#define TENSORS_MOST 4096u

/* Tensors in the memory of a device. More than these are not counted. */
static struct {
	const struct nrt_tensor *tensor; /* NULL: free */
	size_t bytes;
} tensors[TENSORS_MOST];

/* The memory of a tensor is counted from here, or no longer. Returns its bytes; 0: not counted. */
static size_t tensor_swap(const struct nrt_tensor *from, const struct nrt_tensor *to, size_t bytes)
{
	size_t had = 0;

	pthread_mutex_lock(&lock);
	core_queue(0); /* the device */
	for (size_t i = 0; i < TENSORS_MOST; i++)
		if (tensors[i].tensor == from) {
			had = from ? tensors[i].bytes : bytes;
			tensors[i].tensor = to;
			tensors[i].bytes = bytes;
			break;
		}
	pthread_mutex_unlock(&lock);
	return had;
}

KYMO__EXPORT allocate_function nrt_calls_tensor_allocate __asm__("nrt_tensor_allocate");
int nrt_calls_tensor_allocate(int placement, int core, size_t bytes, const char *name,
			      struct nrt_tensor **tensor)
{
	int status;

	REAL(allocate_function *, "nrt_tensor_allocate", FAILURE);
	status = real(placement, core, bytes, name, tensor);
	if (!status && placement == ON_DEVICE && tensor && *tensor && is_recorded(&found) &&
	    tensor_swap(NULL, *tensor, bytes))
		kymo_device_memory(device, "tensor", (int64_t)bytes);
	return status;
}

KYMO__EXPORT free_function nrt_calls_tensor_free __asm__("nrt_tensor_free");
void nrt_calls_tensor_free(struct nrt_tensor **tensor)
{
	size_t bytes = 0;

	REAL(free_function *, "nrt_tensor_free", );
	if (tensor && *tensor && is_recorded(&found))
		bytes = tensor_swap(*tensor, NULL, 0);
	real(tensor);
	if (bytes)
		kymo_device_memory(device, "tensor", -(int64_t)bytes);
}

KYMO__EXPORT read_function nrt_calls_tensor_read __asm__("nrt_tensor_read");
int nrt_calls_tensor_read(const struct nrt_tensor *tensor, void *out, size_t offset, size_t bytes)
{
	struct call call;
	int status;

	REAL(read_function *, "nrt_tensor_read", FAILURE);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_READ);
	status = real(tensor, out, offset, bytes);
	nrt_calls_call_end(&call, call.is_recorded ? nrt_calls_queue_of(0) : 0, 0, bytes, status);
	return status;
}

KYMO__EXPORT write_function nrt_calls_tensor_write __asm__("nrt_tensor_write");
int nrt_calls_tensor_write(struct nrt_tensor *tensor, const void *in, size_t offset, size_t bytes)
{
	struct call call;
	int status;

	REAL(write_function *, "nrt_tensor_write", FAILURE);
	nrt_calls_call_begin(&call, &found, KYMO_DEVICE_WRITE);
	status = real(tensor, in, offset, bytes);
	nrt_calls_call_end(&call, call.is_recorded ? nrt_calls_queue_of(0) : 0, 0, bytes, status);
	return status;
}
