/*
 * A stand-in for CUDA: libcuda.so.1 (driver and runtime in one) with a device that takes exactly
 * the time that each operation says, and libcupti.so.12, built from CUPTI's headers, which reports
 * it. It shows what kymo does with CUPTI's interface; it shows nothing about a GPU.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- what programs call; streams are numbers ------------------------------------------------- */

struct kernel {
	const char *name;
	uint64_t ns;
	int result; /* of the launch */
};

struct graph {
	unsigned id, nodes;
	const struct kernel *kernels;
};

enum copy { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 8 };

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *out);
EXPORT int cudaLaunchKernel(const struct kernel *kernel, unsigned stream);
EXPORT int cuLaunchKernel(const struct kernel *kernel, unsigned stream);
EXPORT int cudaGraphLaunch(const struct graph *graph, unsigned stream);
/* from, to: kinds of memory, as CUPTI numbers them: 1 pageable, 2 pinned, 3 device */
EXPORT int cudaMemcpyAsync(enum copy copy, int from, int to, uint64_t bytes, uint64_t ns,
			   unsigned stream);
EXPORT int cudaMemcpy(enum copy copy, int from, int to, uint64_t bytes, uint64_t ns);
EXPORT int cudaMemsetAsync(uint64_t bytes, uint64_t ns, unsigned stream);
EXPORT int cudaStreamWaitEvent(unsigned stream, unsigned event_of_stream);
EXPORT int cudaStreamSynchronize(unsigned stream);
EXPORT int cudaEventSynchronize(unsigned event_of_stream);
EXPORT int cudaDeviceSynchronize(void);
EXPORT int cudaMalloc(uint64_t *out, uint64_t bytes);
EXPORT int cudaFree(uint64_t address, uint64_t bytes);
EXPORT int cudaSetDevice(unsigned device);

/* ---- what libcupti sees ---------------------------------------------------------------------- */

struct operation {
	uint32_t kind; /* of CUPTI's activities */
	uint32_t device, context, stream, correlation, graph;
	uint64_t graph_node, bytes, start_ns, end_ns; /* of standin_now() */
	uint64_t address;
	const char *name;
	uint8_t copy, from, to, release;
	uint32_t wait; /* type of a synchronisation */
	uint32_t traced; /* libcupti's */
};

struct tracer {
	void (*call)(int exit, int runtime, const char *function, const char *symbol,
		     uint32_t correlation, int result);
	void (*enqueued)(const struct operation *operation);
};
EXPORT void standin_trace(const struct tracer *tracer);
EXPORT uint64_t standin_now(void);

#endif
