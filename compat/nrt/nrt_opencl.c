/*
 * Models on OpenCL. The library is loaded at run time, so that nothing here depends on it; what is
 * used of its interface is declared here, with the names of the specification without their "cl".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nrt_inside.h"

#define BUFFERS 16u /* pointer arguments of a kernel */
#define ITEM_BYTES 16u /* of a buffer, for each work item */

/* ---- what is used of OpenCL 1.2 -------------------------------------------------------------- */

#define DEVICE_TYPE_ALL 0xffffffffull
#define DEVICE_NAME 0x102bu
#define QUEUE_PROFILING_ENABLE 2ull
#define PROGRAM_BUILD_LOG 0x1183u
#define KERNEL_NUM_ARGS 0x1191u
#define KERNEL_ARG_ADDRESS_QUALIFIER 0x1196u
#define KERNEL_ARG_TYPE_NAME 0x1198u
#define ADDRESS_GLOBAL 0x119bu
#define ADDRESS_LOCAL 0x119cu
#define ADDRESS_CONSTANT 0x119du
#define MEM_READ_WRITE 1ull
#define EVENT_STATUS 0x11d3u
#define PROFILING_QUEUED 0x1280u
#define PROFILING_END 0x1283u
#define OUT_OF_HOST_MEMORY (-6)

typedef void *handle; /* of a platform, device, context, queue, program, kernel, buffer or event */

#define FUNCTIONS(X) \
	X(int32_t, GetPlatformIDs, (uint32_t, handle *, uint32_t *)) \
	X(int32_t, GetDeviceIDs, (handle, uint64_t, uint32_t, handle *, uint32_t *)) \
	X(int32_t, GetDeviceInfo, (handle, uint32_t, size_t, void *, size_t *)) \
	X(handle, CreateContext, \
	  (const intptr_t *, uint32_t, const handle *, void *, void *, int32_t *)) \
	X(handle, CreateCommandQueue, (handle, handle, uint64_t, int32_t *)) \
	X(handle, CreateProgramWithSource, \
	  (handle, uint32_t, const char **, const size_t *, int32_t *)) \
	X(int32_t, BuildProgram, (handle, uint32_t, const handle *, const char *, void *, void *)) \
	X(int32_t, GetProgramBuildInfo, (handle, handle, uint32_t, size_t, void *, size_t *)) \
	X(handle, CreateKernel, (handle, const char *, int32_t *)) \
	X(int32_t, GetKernelInfo, (handle, uint32_t, size_t, void *, size_t *)) \
	X(int32_t, GetKernelArgInfo, (handle, uint32_t, uint32_t, size_t, void *, size_t *)) \
	X(int32_t, SetKernelArg, (handle, uint32_t, size_t, const void *)) \
	X(handle, CreateBuffer, (handle, uint64_t, size_t, void *, int32_t *)) \
	X(int32_t, EnqueueNDRangeKernel, \
	  (handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, \
	   const handle *, handle *)) \
	X(int32_t, EnqueueMarkerWithWaitList, (handle, uint32_t, const handle *, handle *)) \
	X(int32_t, WaitForEvents, (uint32_t, const handle *)) \
	X(int32_t, GetEventInfo, (handle, uint32_t, size_t, void *, size_t *)) \
	X(int32_t, GetEventProfilingInfo, (handle, uint32_t, size_t, void *, size_t *)) \
	X(int32_t, ReleaseEvent, (handle)) \
	X(int32_t, ReleaseKernel, (handle)) \
	X(int32_t, ReleaseMemObject, (handle)) \
	X(int32_t, ReleaseProgram, (handle))

static struct {
#define X(result, name, arguments) result(*name) arguments;
	FUNCTIONS(X)
#undef X
	/* OpenCL 2.1; NULL: not there */
	int32_t (*GetDeviceAndHostTimer)(handle, uint64_t *, uint64_t *);
} cl;

static const struct {
	const char *name;
	void **place;
} functions[] = {
#define X(result, name, arguments) { "cl" #name, (void **)&cl.name },
	FUNCTIONS(X)
#undef X
};

/* ---- the device ---- */

static handle device, context;
static handle queues[NRT_CORES]; /* by core; each made once, and kept */
static char name_of_device[NRT_NAME_BYTES];

static const char *find_functions(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return "libOpenCL.so.1 was not found";
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		*functions[i].place = dlsym(library, functions[i].name);
		if (!*functions[i].place)
			return "libOpenCL.so.1 is older than OpenCL 1.2";
	}
	*(void **)&cl.GetDeviceAndHostTimer = dlsym(library, "clGetDeviceAndHostTimer");
	return NULL;
}

static const char *find_device(void)
{
	handle platforms[8];
	uint32_t count = 0;
	int32_t rc;

	if (cl.GetPlatformIDs(8, platforms, &count) || !count)
		return "OpenCL has no platform";
	for (uint32_t i = 0; i < count && i < 8 && !device; i++)
		if (cl.GetDeviceIDs(platforms[i], DEVICE_TYPE_ALL, 1, &device, NULL))
			device = NULL;
	if (!device)
		return "OpenCL has no device";
	if (cl.GetDeviceInfo(device, DEVICE_NAME, sizeof(name_of_device) - 1, name_of_device,
			     NULL) ||
	    !name_of_device[0])
		strcpy(name_of_device, "OpenCL");
	context = cl.CreateContext(NULL, 1, &device, NULL, NULL, &rc);
	return context ? NULL : "OpenCL cannot create a context";
}

static const char *nrt_opencl_device_name(void)
{
	return name_of_device;
}

/* ---- its clock ---- */

/* Drivers of host devices take one of these for their clock; 0 of them, and the device is asked by
   a marker. */
static const clockid_t host_clocks[] = { CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
					 CLOCK_REALTIME };
#define HOST_CLOCKS (sizeof(host_clocks) / sizeof(host_clocks[0]))

static handle clock_queue; /* for markers */
static size_t clock_found = HOST_CLOCKS;

static uint64_t host_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* When the device came by a marker; 0: not known. */
static uint64_t marker_ns(void)
{
	uint64_t end_ns = 0;
	handle event;

	if (!clock_queue || cl.EnqueueMarkerWithWaitList(clock_queue, 0, NULL, &event))
		return 0;
	if (cl.WaitForEvents(1, &event) ||
	    cl.GetEventProfilingInfo(event, PROFILING_END, sizeof(end_ns), &end_ns, NULL))
		end_ns = 0;
	cl.ReleaseEvent(event);
	return end_ns;
}

static bool asks_device(uint64_t *out_ns)
{
	uint64_t of_host;

	return cl.GetDeviceAndHostTimer && !cl.GetDeviceAndHostTimer(device, out_ns, &of_host);
}

/* Which of the host's clocks has a marker between two looks at it. */
static void find_clock(void)
{
	uint64_t before[HOST_CLOCKS], marked;
	int32_t rc;

	if (asks_device(&marked))
		return;
	clock_queue = cl.CreateCommandQueue(context, device, QUEUE_PROFILING_ENABLE, &rc);
	for (size_t i = 0; i < HOST_CLOCKS; i++)
		before[i] = host_ns(host_clocks[i]);
	marked = marker_ns();
	for (size_t i = 0; i < HOST_CLOCKS && clock_found == HOST_CLOCKS; i++)
		if (marked >= before[i] && marked <= host_ns(host_clocks[i]))
			clock_found = i;
}

static uint64_t clock_ns(void)
{
	uint64_t now_ns;

	if (clock_found < HOST_CLOCKS)
		return host_ns(host_clocks[clock_found]);
	return asks_device(&now_ns) ? now_ns : marker_ns();
}

static NRT_STATUS nrt_opencl_open_device(const char **why)
{
	static const char *failed;
	static bool tried;

	if (!tried) {
		tried = true;
		failed = find_functions();
		if (!failed)
			failed = find_device();
		if (!failed)
			find_clock();
	}
	*why = failed;
	return failed ? NRT_FAILURE : NRT_SUCCESS;
}

/* ---- a model ---- */

struct loaded {
	handle program;
	handle kernels[NRT_OPERATIONS];
	handle buffers[BUFFERS];
	size_t count;
};

static NRT_STATUS nrt_opencl_status_of(int32_t rc)
{
	return !rc ? NRT_SUCCESS : rc == OUT_OF_HOST_MEMORY ? NRT_RESOURCE : NRT_FAILURE;
}

static void nrt_opencl_unload(void *memory)
{
	struct loaded *loaded = memory;

	for (size_t i = 0; i < NRT_OPERATIONS; i++)
		if (loaded->kernels[i])
			cl.ReleaseKernel(loaded->kernels[i]);
	for (size_t i = 0; i < BUFFERS; i++)
		if (loaded->buffers[i])
			cl.ReleaseMemObject(loaded->buffers[i]);
	if (loaded->program)
		cl.ReleaseProgram(loaded->program);
	free(loaded);
}

static void say_build_log(handle program, const char *model)
{
	char log[2048] = "";
	size_t bytes = 0;
	char *all = NULL;

	if (!cl.GetProgramBuildInfo(program, device, PROGRAM_BUILD_LOG, 0, NULL, &bytes) && bytes)
		all = calloc(1, bytes + 1);
	if (all && !cl.GetProgramBuildInfo(program, device, PROGRAM_BUILD_LOG, bytes, all, NULL))
		snprintf(log, sizeof(log), "%s", all);
	free(all);
	nrt_say("cannot load %s: it does not compile as OpenCL C: %s", model, log);
}

static NRT_STATUS nrt_opencl_build(struct loaded *loaded, const char *text, size_t bytes,
				   const struct nrt_text *about)
{
	int32_t rc = 0;

	loaded->program = cl.CreateProgramWithSource(context, 1, &text, &bytes, &rc);
	if (!loaded->program)
		return nrt_opencl_status_of(rc ? rc : OUT_OF_HOST_MEMORY);
	rc = cl.BuildProgram(loaded->program, 1, &device, "-cl-kernel-arg-info", NULL, NULL);
	if (rc == OUT_OF_HOST_MEMORY)
		return NRT_RESOURCE;
	if (!rc)
		return NRT_SUCCESS;
	say_build_log(loaded->program, about->name);
	return NRT_INVALID;
}

/* A number as the argument's type has it: the size of the run. */
static int32_t nrt_opencl_set_number(handle kernel, uint32_t index, uint64_t value)
{
	char type[64] = "";
	float real = (float)value;
	double long_real = (double)value;
	int32_t rc = -1;

	cl.GetKernelArgInfo(kernel, index, KERNEL_ARG_TYPE_NAME, sizeof(type), type, NULL);
	if (!strcmp(type, "float"))
		return cl.SetKernelArg(kernel, index, sizeof(real), &real);
	if (!strcmp(type, "double"))
		return cl.SetKernelArg(kernel, index, sizeof(long_real), &long_real);
	for (size_t bytes = 4; rc && bytes; bytes = bytes == 4 ? 8 : bytes == 8 ? 2 : bytes - 1)
		rc = cl.SetKernelArg(kernel, index, bytes, &value);
	return rc;
}

static int32_t set_argument(struct loaded *loaded, handle kernel, uint32_t index,
			    uint32_t *pointers, uint64_t size)
{
	uint32_t where = 0;
	int32_t rc = cl.GetKernelArgInfo(kernel, index, KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(where),
					 &where, NULL);
	handle *buffer;

	if (rc)
		return rc;
	if (where == ADDRESS_LOCAL)
		return cl.SetKernelArg(kernel, index, 256 * ITEM_BYTES, NULL);
	if (where != ADDRESS_GLOBAL && where != ADDRESS_CONSTANT)
		return nrt_opencl_set_number(kernel, index, size);
	if (*pointers == BUFFERS)
		return -1;
	buffer = &loaded->buffers[(*pointers)++];
	if (!*buffer)
		*buffer = cl.CreateBuffer(context, MEM_READ_WRITE, size * ITEM_BYTES, NULL, &rc);
	return *buffer ? cl.SetKernelArg(kernel, index, sizeof(*buffer), buffer) : rc;
}

static NRT_STATUS make_kernel(struct loaded *loaded, const struct nrt_text *about, size_t at)
{
	uint32_t arguments = 0, pointers = 0;
	int32_t rc = 0;
	handle kernel = cl.CreateKernel(loaded->program, about->operations[at].name, &rc);

	loaded->kernels[at] = kernel;
	if (!rc)
		rc = cl.GetKernelInfo(kernel, KERNEL_NUM_ARGS, sizeof(arguments), &arguments, NULL);
	for (uint32_t i = 0; !rc && i < arguments; i++)
		rc = set_argument(loaded, kernel, i, &pointers, about->size);
	if (!rc || rc == OUT_OF_HOST_MEMORY)
		return nrt_opencl_status_of(rc);
	nrt_say("cannot load %s: its kernel %s has unsupported arguments (OpenCL error %d); "
		"supported are numbers and up to 16 pointers",
		about->name, about->operations[at].name, rc);
	return NRT_INVALID;
}

static NRT_STATUS nrt_opencl_load(const char *text, size_t bytes, const struct nrt_text *about,
				  uint32_t core, void **out)
{
	struct loaded *loaded = calloc(1, sizeof(*loaded));
	NRT_STATUS status;
	int32_t rc = 0;

	if (!loaded)
		return NRT_RESOURCE;
	status = nrt_opencl_build(loaded, text, bytes, about);
	for (size_t i = 0; status == NRT_SUCCESS && i < about->count; i++)
		status = make_kernel(loaded, about, i);
	if (status == NRT_SUCCESS && !queues[core]) {
		queues[core] = cl.CreateCommandQueue(context, device, QUEUE_PROFILING_ENABLE, &rc);
		status = queues[core] ? NRT_SUCCESS
				      : nrt_opencl_status_of(rc ? rc : OUT_OF_HOST_MEMORY);
	}
	if (status == NRT_SUCCESS)
		*out = loaded;
	else
		nrt_opencl_unload(loaded);
	return status;
}

/* ---- running ---- */

static NRT_STATUS times_of(handle event, struct nrt_times *out)
{
	uint64_t *fields[] = { &out->queued, &out->submit, &out->start, &out->end };
	int32_t done = -1, rc = cl.GetEventInfo(event, EVENT_STATUS, sizeof(done), &done, NULL);

	for (uint32_t i = 0; !rc && i < 4; i++)
		rc = cl.GetEventProfilingInfo(event, PROFILING_QUEUED + i, sizeof(uint64_t),
					      fields[i], NULL);
	return rc || done ? NRT_HW_ERROR : NRT_SUCCESS;
}

static NRT_STATUS nrt_opencl_run(void *memory, const struct nrt_text *about, uint32_t core,
				 struct nrt_times *times)
{
	struct loaded *loaded = memory;
	handle events[NRT_OPERATIONS];
	NRT_STATUS status = NRT_SUCCESS;
	size_t size = about->size;
	uint32_t count = 0;

	while (count < about->count &&
	       !cl.EnqueueNDRangeKernel(queues[core], loaded->kernels[count], 1, NULL, &size, NULL,
					0, NULL, &events[count]))
		count++;
	if (count && cl.WaitForEvents(count, events))
		status = NRT_HW_ERROR;
	if (count < about->count)
		status = NRT_HW_ERROR;
	for (uint32_t i = 0; i < count; i++) {
		NRT_STATUS one = times_of(events[i], &times[i]);

		status = status == NRT_SUCCESS ? one : status;
		cl.ReleaseEvent(events[i]);
	}
	return status;
}

const struct nrt_backend nrt_opencl = {
	nrt_opencl_open_device, nrt_opencl_device_name, clock_ns,
	nrt_opencl_load,	nrt_opencl_run,		nrt_opencl_unload
};
