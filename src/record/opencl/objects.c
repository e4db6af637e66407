/* Queues, kernels and programs: their handles in the program, and their numbers in the
   recording. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kymo/atomic.h>

#include "record/opencl/layer.h"

/* ---- maps ---------------------------------------------------------------------------------- */

#define MAP_SIZE 16384u /* a power of two */
#define MAP_WINDOW 64u /* slots in which a key may be */
#define GONE 1u /* a slot whose key was removed */

struct map {
	struct {
		uintptr_t key; /* atomic */
		uint64_t value; /* atomic */
	} places[MAP_SIZE];
};

static struct map queue_map, kernel_map, program_map;
struct map svm_map;

static uint32_t objects_place_of(const void *key, uint32_t step)
{
	uint64_t mixed = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;

	return (uint32_t)((mixed >> 40) + step) & (MAP_SIZE - 1);
}

void map_put(struct map *map, const void *key, uint64_t value)
{
	map_take(map, key); /* of an earlier object at this address */
	for (uint32_t i = 0; i < MAP_WINDOW; i++) {
		uint32_t at = objects_place_of(key, i);
		uintptr_t old = kymo__load_relaxed(&map->places[at].key);

		if (old > GONE || !kymo__cas_acq_rel(&map->places[at].key, &old, (uintptr_t)key))
			continue;
		kymo__store_release(&map->places[at].value, value);
		return;
	}
}

static uint32_t objects_find(const struct map *map, const void *key)
{
	for (uint32_t i = 0; i < MAP_WINDOW; i++) {
		uint32_t at = objects_place_of(key, i);
		uintptr_t seen = kymo__load_acquire(&map->places[at].key);

		if (seen == (uintptr_t)key)
			return at;
		if (!seen)
			break;
	}
	return MAP_SIZE;
}

uint64_t map_get(const struct map *map, const void *key)
{
	uint32_t at = key ? objects_find(map, key) : MAP_SIZE;

	return at < MAP_SIZE ? kymo__load_acquire(&map->places[at].value) : 0;
}

uint64_t map_take(struct map *map, const void *key)
{
	uint32_t at = key ? objects_find(map, key) : MAP_SIZE;
	uint64_t value;

	if (at == MAP_SIZE)
		return 0;
	value = kymo__exchange_acq_rel(&map->places[at].value, 0);
	kymo__store_release(&map->places[at].key, GONE);
	return value;
}

/* ---- devices ------------------------------------------------------------------------------- */

static struct layer_device devices[KYMO_DEVICES_MAX];
static uint32_t device_count, device_turn; /* atomic */

static const struct kymo_device_adapter adapter = {
	sizeof(adapter), "opencl", NULL, clock_now, pending_flush,
};

struct layer_device *device_at(uint32_t local)
{
	return &devices[local % KYMO_DEVICES_MAX];
}

static struct layer_device *device_add(cl_device_id handle, uint32_t index)
{
	struct layer_device *device = &devices[index];
	char name[256] = "";
	cl_ulong device_ns, host_ns;

	if (next.clGetDeviceInfo(handle, CL_DEVICE_NAME, sizeof(name), name, NULL) || !name[0])
		snprintf(name, sizeof(name), "OpenCL device");
	name[sizeof(name) - 1] = '\0';
	device->handle = handle;
	clock_begin(device);
	if (next.clGetDeviceAndHostTimer &&
	    !next.clGetDeviceAndHostTimer(handle, &device_ns, &host_ns))
		device->mode = CLOCK_TIMER;
	device->id = kymo_device_add(&adapter, index, name);
	kymo__store_release(&device_count, index + 1);
	return device;
}

/* The holder is done within a millisecond, unless it was preempted or does not exist in this
   child of a fork. Waits at most about 100 ms, once per device, when a context and a queue are
   created. */
static bool take_turn(void)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	for (int i = 0; i < 1000; i++) {
		uint32_t idle = 0;

		if (kymo__cas_acquire(&device_turn, &idle, 1))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

struct layer_device *device_of(cl_device_id handle)
{
	uint32_t count = kymo__load_acquire(&device_count);
	struct layer_device *found = NULL;

	for (uint32_t i = 0; i < count; i++)
		if (devices[i].handle == handle)
			return &devices[i];
	if (count == KYMO_DEVICES_MAX || !take_turn())
		return NULL;
	count = kymo__load_acquire(&device_count);
	for (uint32_t i = 0; i < count && !found; i++)
		found = devices[i].handle == handle ? &devices[i] : NULL;
	if (!found && count < KYMO_DEVICES_MAX)
		found = device_add(handle, count);
	kymo__store_release(&device_turn, 0);
	return found;
}

struct layer_device *device_of_context(cl_context context)
{
	cl_device_id handles[KYMO_DEVICES_MAX];
	size_t bytes = 0;

	if (!context ||
	    next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(handles), handles, &bytes) ||
	    bytes < sizeof(handles[0]))
		return NULL;
	return device_of(handles[0]);
}

/* ---- queues -------------------------------------------------------------------------------- */

#define QUEUES_BEFORE_REUSE 256u

static struct layer_queue queues[KYMO_DEVICE_QUEUES_MAX];
static uint32_t queue_count; /* atomic */

struct layer_queue *queue_of(cl_command_queue queue)
{
	return (struct layer_queue *)(uintptr_t)map_get(&queue_map, queue);
}

struct layer_queue *queue_at(uint32_t index)
{
	uint32_t count = kymo__load_acquire(&queue_count);

	return index < count && index < KYMO_DEVICE_QUEUES_MAX ? &queues[index] : NULL;
}

/* Reuses released queues, for programs that keep creating them. */
static struct layer_queue *queue_again(const struct layer_device *device)
{
	struct layer_queue *queue;

	if (kymo__load_relaxed(&queue_count) < QUEUES_BEFORE_REUSE)
		return NULL;
	for (uint32_t i = 0; (queue = queue_at(i)); i++) {
		uint32_t released = 0;

		if (kymo__load_acquire(&queue->device) == device &&
		    !kymo__load_acquire(&queue->pending) &&
		    kymo__cas_acquire(&queue->refs, &released, 1))
			return queue;
	}
	return NULL;
}

static struct layer_queue *queue_new(struct layer_device *device)
{
	uint32_t index = kymo__load_relaxed(&queue_count);

	do {
		if (index >= KYMO_DEVICE_QUEUES_MAX)
			return NULL;
	} while (!kymo__cas_relaxed(&queue_count, &index, index + 1));
	kymo__store_relaxed(&queues[index].refs, 1);
	queues[index].id = kymo_device_queue_add(device->id, NULL, KYMO_DEVICE_NEXT_CORE);
	/* Last: queue_again() of another thread must not take it for a released one. */
	kymo__store_release(&queues[index].device, device);
	return &queues[index];
}

/* Registered as late as possible, so that it runs before the exit handlers of the runtime. */
static void look_at_exit(void)
{
	static uint32_t registered;

	if (!kymo__exchange_relaxed(&registered, 1))
		atexit(pending_look_all);
}

static void queue_made(cl_command_queue handle, cl_device_id device_handle,
		       cl_command_queue_properties asked, bool timed,
		       const cl_queue_properties *list, size_t words)
{
	struct layer_device *device = device_of(device_handle);
	struct layer_queue *queue = device ? queue_again(device) : NULL;

	if (device && !queue)
		queue = queue_new(device);
	if (!queue || !queue->id)
		return;
	queue->ordered = !(asked & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	queue->asked = asked;
	queue->timed = timed;
	queue->added = timed && !(asked & CL_QUEUE_PROFILING_ENABLE);
	queue->asked_words = words;
	if (words)
		memcpy(queue->asked_list, list, words * sizeof(*list));
	map_put(&queue_map, handle, (uint64_t)(uintptr_t)queue);
	look_at_exit();
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
						 cl_command_queue_properties properties,
						 cl_int *out_rc)
{
	cl_command_queue queue = next.clCreateCommandQueue(
		context, device, properties | CL_QUEUE_PROFILING_ENABLE, out_rc);
	bool timed = queue != NULL;

	if (!queue)
		queue = next.clCreateCommandQueue(context, device, properties, out_rc);
	if (queue)
		queue_made(queue, device, properties, timed, NULL, 0);
	return queue;
}

/* Words of a list with its 0; 0: too many. */
static size_t objects_words_of(const cl_queue_properties *list)
{
	size_t words = 0;

	while (list[words] && words + 2 < ASKED_MOST)
		words += 2;
	return list[words] ? 0 : words + 1;
}

/* The list with profiling added, and the list as requested. */
static void add_profiling(const cl_queue_properties *list, size_t words, cl_queue_properties *out,
			  cl_command_queue_properties *asked)
{
	size_t i = 0;

	if (words > 1)
		memcpy(out, list, (words - 1) * sizeof(*list));
	for (; i + 1 < words; i += 2)
		if (out[i] == CL_QUEUE_PROPERTIES) {
			*asked = out[i + 1];
			out[i + 1] |= CL_QUEUE_PROFILING_ENABLE;
			break;
		}
	if (i + 1 < words) {
		out[words - 1] = 0;
		return;
	}
	i = words ? words - 1 : 0;
	out[i] = CL_QUEUE_PROPERTIES;
	out[i + 1] = CL_QUEUE_PROFILING_ENABLE;
	out[i + 2] = 0;
}

static cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
						      const cl_queue_properties *list,
						      cl_int *out_rc)
{
	cl_queue_properties profiled[ASKED_MOST + 3];
	cl_command_queue_properties asked = 0;
	cl_command_queue queue = NULL;
	size_t words = list ? objects_words_of(list) : 0;
	bool timed = false;

	if (!list || words) {
		add_profiling(list, words, profiled, &asked);
		queue = next.clCreateCommandQueueWithProperties(context, device, profiled, out_rc);
		timed = queue != NULL;
	}
	if (!queue)
		queue = next.clCreateCommandQueueWithProperties(context, device, list, out_rc);
	if (queue)
		queue_made(queue, device, asked, timed, list, words);
	return queue;
}

static cl_int CL_API_CALL retain_queue(cl_command_queue handle)
{
	cl_int rc = next.clRetainCommandQueue(handle);
	struct layer_queue *queue = rc ? NULL : queue_of(handle);

	if (queue)
		kymo__fetch_add_relaxed(&queue->refs, 1);
	return rc;
}

static cl_int CL_API_CALL release_queue(cl_command_queue handle)
{
	struct layer_queue *queue = queue_of(handle);
	cl_int rc;

	if (queue)
		pending_look(queue);
	if (queue && kymo__load_acquire(&queue->refs) == 1)
		map_take(&queue_map, handle); /* before the address can be reused */
	rc = next.clReleaseCommandQueue(handle);
	if (queue && !rc) {
		pending_look(queue); /* releasing may wait for its end */
		kymo__fetch_sub_release(&queue->refs, 1);
	}
	return rc;
}

static cl_int objects_answer(const void *value, size_t size, size_t bytes, void *out,
			     size_t *out_bytes)
{
	if (out && bytes < size)
		return CL_INVALID_VALUE;
	if (out && size)
		memcpy(out, value, size);
	if (out_bytes)
		*out_bytes = size;
	return CL_SUCCESS;
}

/* Hides the added profiling. */
static cl_int CL_API_CALL queue_info(cl_command_queue handle, cl_command_queue_info what,
				     size_t bytes, void *out, size_t *out_bytes)
{
	struct layer_queue *queue = queue_of(handle);
	cl_int rc;

	if (queue && what == CL_QUEUE_REFERENCE_COUNT)
		pending_look(queue);
	rc = next.clGetCommandQueueInfo(handle, what, bytes, out, out_bytes);
	if (rc || !queue || !queue->added)
		return rc;
	if (what == CL_QUEUE_PROPERTIES)
		return objects_answer(&queue->asked, sizeof(queue->asked), bytes, out, out_bytes);
	if (what == CL_QUEUE_PROPERTIES_ARRAY)
		return objects_answer(queue->asked_list,
				      queue->asked_words * sizeof(queue->asked_list[0]), bytes, out,
				      out_bytes);
	return rc;
}

/* ---- events -------------------------------------------------------------------------------- */

static cl_int CL_API_CALL event_times(cl_event event, cl_profiling_info what, size_t bytes,
				      void *out, size_t *out_bytes)
{
	cl_command_queue handle = NULL;
	struct layer_queue *queue;

	if (!next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(handle), (void *)&handle,
				 NULL) &&
	    handle && (queue = queue_of(handle)) && queue->added)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return next.clGetEventProfilingInfo(event, what, bytes, out, out_bytes);
}

/* Hides our own reference from the program. */
static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t bytes, void *out,
				     size_t *out_bytes)
{
	cl_int rc;

	if (what == CL_EVENT_REFERENCE_COUNT)
		pending_look_all();
	rc = next.clGetEventInfo(event, what, bytes, out, out_bytes);
	if (!rc && what == CL_EVENT_REFERENCE_COUNT && out)
		*(cl_uint *)out -= pending_refs(event);
	return rc;
}

/* ---- kernels, programs --------------------------------------------------------------------- */

static uint8_t model_taken[KYMO_DEVICE_MODELS_MAX + 1]; /* atomic */

/* "saxpy", "saxpy +2" for a program of three kernels; " #2" for another program of that name. */
static uint32_t model_for(const char *kernels)
{
	char name[96], numbered[112];
	size_t first = strcspn(kernels, ";"), more = 0;
	uint32_t model = 0;

	for (const char *c = kernels; *c; c++)
		more += *c == ';';
	if (more)
		snprintf(name, sizeof(name), "%.*s +%zu", first < 80 ? (int)first : 80, kernels,
			 more);
	else
		snprintf(name, sizeof(name), "%.*s", first < 80 ? (int)first : 80, kernels);
	for (int i = 1; i < 1000; i++) {
		snprintf(numbered, sizeof(numbered), i > 1 ? "%s #%d" : "%s", name, i);
		model = kymo_device_model_add(numbered);
		if (!model || !kymo__exchange_relaxed(&model_taken[model], 1))
			break;
	}
	return model;
}

static uint32_t objects_model_of(cl_program program)
{
	uint32_t model = (uint32_t)map_get(&program_map, program);
	char kernels[1024] = "";

	if (model)
		return model;
	if (next.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(kernels), kernels,
				  NULL) ||
	    !kernels[0])
		snprintf(kernels, sizeof(kernels), "program");
	kernels[sizeof(kernels) - 1] = '\0';
	model = model_for(kernels);
	map_put(&program_map, program, model);
	return model;
}

static uint64_t kernel_learn(cl_kernel kernel)
{
	char name[256] = "";
	cl_program program = NULL;
	uint64_t value;

	next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL);
	name[sizeof(name) - 1] = '\0';
	next.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), (void *)&program, NULL);
	value = kymo_name_full(name[0] ? name : "kernel", strlen(name[0] ? name : "kernel"), NULL,
			       0, 0, KYMO_SOURCE_DEVICE, 0);
	if (!value)
		return 0; /* nothing is recorded yet */
	value |= (uint64_t)(program ? objects_model_of(program) : 0) << 32;
	map_put(&kernel_map, kernel, value);
	return value;
}

struct layer_kernel kernel_of(cl_kernel kernel)
{
	uint64_t value = map_get(&kernel_map, kernel);

	if (!value)
		value = kernel_learn(kernel);
	return (struct layer_kernel){ (uint32_t)value, (uint32_t)(value >> 32) };
}

/*
 * The address may be reused at once, or when the last command that uses the kernel is done, which
 * is not reported. A kernel that is still alive is looked up again.
 */
static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
	map_take(&kernel_map, kernel);
	return next.clReleaseKernel(kernel);
}

/* Likewise. */
static cl_int CL_API_CALL release_program(cl_program program)
{
	cl_uint refs = 0;

	if (map_get(&program_map, program) &&
	    !next.clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(refs), &refs,
				   NULL) &&
	    refs == 1)
		kymo__store_relaxed(&model_taken[map_take(&program_map, program)], 0);
	return next.clReleaseProgram(program);
}

static cl_int CL_API_CALL release_context(cl_context context)
{
	pending_look_all(); /* our events hold a reference */
	return next.clReleaseContext(context);
}

#define HOOK(function, ours) \
	if (table->function) \
	table->function = (ours)

void objects_hook(cl_icd_dispatch *table)
{
	HOOK(clCreateCommandQueue, create_queue);
	HOOK(clCreateCommandQueueWithProperties, create_queue_with);
	HOOK(clRetainCommandQueue, retain_queue);
	HOOK(clReleaseCommandQueue, release_queue);
	HOOK(clGetCommandQueueInfo, queue_info);
	HOOK(clGetEventProfilingInfo, event_times);
	HOOK(clGetEventInfo, event_info);
	HOOK(clReleaseKernel, release_kernel);
	HOOK(clReleaseProgram, release_program);
	HOOK(clReleaseContext, release_context);
}
