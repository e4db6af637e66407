#include "standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS 64
#define DEVICES 4
#define LATENCY_NS 5000 /* from the launch to the start on an idle stream */

static const struct tracer *tracer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t free_ns[DEVICES][STREAMS];
static uint32_t correlations;
static __thread unsigned current; /* device */

void standin_trace(const struct tracer *next)
{
	__atomic_store_n(&tracer, next, __ATOMIC_RELEASE);
}

uint64_t standin_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* As the driver does. */
static void init(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*initialize)(void) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

int cuInit(unsigned flags)
{
	(void)flags;
	pthread_once(&once, init);
	return 0;
}

int cuDriverGetVersion(int *out)
{
	*out = 12090;
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t enter(int runtime, const char *function, const char *symbol)
{
	uint32_t correlation;

	cuInit(0);
	correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	if (tracer)
		tracer->call(0, runtime, function, symbol, correlation, 0);
	return correlation;
}

/* The driver's part of a call of the runtime has the same number. */
static void inner(const char *function, const char *symbol, uint32_t correlation)
{
	if (!tracer)
		return;
	tracer->call(0, 0, function, symbol, correlation, 0);
	tracer->call(1, 0, function, symbol, correlation, 0);
}

static int leave(int runtime, const char *function, const char *symbol, uint32_t correlation,
		 int result)
{
	if (tracer)
		tracer->call(1, runtime, function, symbol, correlation, result);
	return result;
}

/* Places it on its stream; returns its end. */
static uint64_t enqueue(struct operation operation, uint64_t ns)
{
	uint64_t now = standin_now(), *free = &free_ns[current][operation.stream % STREAMS];

	operation.device = current;
	operation.context = current + 1;
	pthread_mutex_lock(&lock);
	operation.start_ns = *free > now + LATENCY_NS ? *free : now + LATENCY_NS;
	operation.end_ns = *free = operation.start_ns + ns;
	pthread_mutex_unlock(&lock);
	if (tracer)
		tracer->enqueued(&operation);
	return operation.end_ns;
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (standin_now() < ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void launch(const struct kernel *kernel, unsigned stream, uint32_t correlation)
{
	if (!kernel->result)
		enqueue((struct operation){ .kind = 10,
					    .stream = stream,
					    .name = kernel->name,
					    .correlation = correlation },
			kernel->ns);
}

int cudaLaunchKernel(const struct kernel *kernel, unsigned stream)
{
	uint32_t correlation = enter(1, "cudaLaunchKernel", kernel->name);

	inner("cuLaunchKernel", kernel->name, correlation);
	launch(kernel, stream, correlation);
	return leave(1, "cudaLaunchKernel", kernel->name, correlation, kernel->result);
}

int cuLaunchKernel(const struct kernel *kernel, unsigned stream)
{
	uint32_t correlation = enter(0, "cuLaunchKernel", kernel->name);

	launch(kernel, stream, correlation);
	return leave(0, "cuLaunchKernel", kernel->name, correlation, kernel->result);
}

int cudaGraphLaunch(const struct graph *graph, unsigned stream)
{
	uint32_t correlation = enter(1, "cudaGraphLaunch", NULL);

	for (unsigned i = 0; i < graph->nodes; i++)
		enqueue((struct operation){ .kind = 10,
					    .stream = stream,
					    .name = graph->kernels[i].name,
					    .correlation = correlation,
					    .graph = graph->id,
					    .graph_node = i + 1 },
			graph->kernels[i].ns);
	return leave(1, "cudaGraphLaunch", NULL, correlation, 0);
}

static uint64_t copy(enum copy kind, int from, int to, uint64_t bytes, uint64_t ns, unsigned stream,
		     uint32_t correlation)
{
	return enqueue((struct operation){ .kind = 1,
					   .stream = stream,
					   .bytes = bytes,
					   .copy = (uint8_t)kind,
					   .from = (uint8_t)from,
					   .to = (uint8_t)to,
					   .correlation = correlation },
		       ns);
}

int cudaMemcpyAsync(enum copy kind, int from, int to, uint64_t bytes, uint64_t ns, unsigned stream)
{
	uint32_t correlation = enter(1, "cudaMemcpyAsync", NULL);

	copy(kind, from, to, bytes, ns, stream, correlation);
	return leave(1, "cudaMemcpyAsync", NULL, correlation, 0);
}

int cudaMemcpy(enum copy kind, int from, int to, uint64_t bytes, uint64_t ns)
{
	uint32_t correlation = enter(1, "cudaMemcpy", NULL);

	sleep_until(copy(kind, from, to, bytes, ns, 7, correlation));
	return leave(1, "cudaMemcpy", NULL, correlation, 0);
}

int cudaMemsetAsync(uint64_t bytes, uint64_t ns, unsigned stream)
{
	uint32_t correlation = enter(1, "cudaMemsetAsync", NULL);

	enqueue((struct operation){ .kind = 2,
				    .stream = stream,
				    .bytes = bytes,
				    .to = 3,
				    .correlation = correlation },
		ns);
	return leave(1, "cudaMemsetAsync", NULL, correlation, 0);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void tell_wait(uint32_t type, uint32_t stream, uint32_t correlation, uint64_t start_ns)
{
	struct operation operation = { .kind = 38,
				       .wait = type,
				       .stream = stream,
				       .context = current + 1,
				       .device = current,
				       .correlation = correlation,
				       .start_ns = start_ns,
				       .end_ns = standin_now() };

	if (tracer)
		tracer->enqueued(&operation);
}

static int wait_for(const char *function, const char *driver, uint32_t type, uint32_t stream,
		    uint64_t until_ns)
{
	uint32_t correlation = enter(1, function, NULL);
	uint64_t start_ns = standin_now();

	inner(driver, NULL, correlation);
	sleep_until(until_ns);
	tell_wait(type, stream, correlation, start_ns);
	return leave(1, function, NULL, correlation, 0);
}

int cudaStreamSynchronize(unsigned stream)
{
	return wait_for("cudaStreamSynchronize", "cuStreamSynchronize", 3, stream,
			free_ns[current][stream % STREAMS]);
}

int cudaEventSynchronize(unsigned stream)
{
	return wait_for("cudaEventSynchronize", "cuEventSynchronize", 1, stream,
			free_ns[current][stream % STREAMS]);
}

int cudaDeviceSynchronize(void)
{
	uint64_t last = 0;

	for (int i = 0; i < STREAMS; i++)
		last = free_ns[current][i] > last ? free_ns[current][i] : last;
	return wait_for("cudaDeviceSynchronize", "cuCtxSynchronize", 4, UINT32_MAX, last);
}

int cudaStreamWaitEvent(unsigned stream, unsigned event_of_stream)
{
	uint32_t correlation = enter(1, "cudaStreamWaitEvent", NULL);
	uint64_t until = free_ns[current][event_of_stream % STREAMS];

	pthread_mutex_lock(&lock);
	if (free_ns[current][stream % STREAMS] < until)
		free_ns[current][stream % STREAMS] = until;
	pthread_mutex_unlock(&lock);
	tell_wait(2, stream, correlation, standin_now());
	return leave(1, "cudaStreamWaitEvent", NULL, correlation, 0);
}

/* ---- memory, devices ------------------------------------------------------------------------- */

static void tell_memory(uint64_t address, uint64_t bytes, int release, uint32_t correlation)
{
	struct operation operation = { .kind = 49,
				       .bytes = bytes,
				       .address = address,
				       .release = (uint8_t)release,
				       .device = current,
				       .context = current + 1,
				       .correlation = correlation,
				       .start_ns = standin_now(),
				       .end_ns = standin_now() };

	if (tracer)
		tracer->enqueued(&operation);
}

int cudaMalloc(uint64_t *out, uint64_t bytes)
{
	static uint64_t next = 0x7f0000000000;
	uint32_t correlation = enter(1, "cudaMalloc", NULL);

	*out = __atomic_fetch_add(&next, bytes, __ATOMIC_RELAXED);
	tell_memory(*out, bytes, 0, correlation);
	return leave(1, "cudaMalloc", NULL, correlation, 0);
}

int cudaFree(uint64_t address, uint64_t bytes)
{
	uint32_t correlation = enter(1, "cudaFree", NULL);

	tell_memory(address, bytes, 1, correlation);
	return leave(1, "cudaFree", NULL, correlation, 0);
}

int cudaSetDevice(unsigned device)
{
	current = device % DEVICES;
	return 0;
}
