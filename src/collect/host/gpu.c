#include "collect/host/gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <kymo/atomic.h>

#include "base/schema.h"
#include "record/record.h"

#define DEVICES_MOST 64u
#define PAUSE_NS 50000000
#define LAST_PAUSE_NS 2000000
#define LAST_PAUSES 100 /* to wait for the thread to end */

/* Types as documented by NVML. The installed library may be older than available headers. */
struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_memory {
	unsigned long long total, free, used;
};

static struct {
	int (*init)(void);
	int (*count)(unsigned *out);
	int (*handle)(unsigned index, void **out);
	int (*utilization)(void *device, struct nvml_utilization *out);
	int (*memory)(void *device, struct nvml_memory *out);
	int (*power)(void *device, unsigned *out_milliwatts);
} nvml;

static const struct {
	const char *name;
	void **place;
} functions[] = {
	{ "nvmlInit_v2", (void **)(void *)&nvml.init },
	{ "nvmlDeviceGetCount_v2", (void **)(void *)&nvml.count },
	{ "nvmlDeviceGetHandleByIndex_v2", (void **)(void *)&nvml.handle },
	{ "nvmlDeviceGetUtilizationRates", (void **)(void *)&nvml.utilization },
	{ "nvmlDeviceGetMemoryInfo", (void **)(void *)&nvml.memory },
	{ "nvmlDeviceGetPowerUsage", (void **)(void *)&nvml.power },
};

static uint32_t stopping, ended; /* atomic */
static bool started;

/* Machines without a GPU have no library; that is not reported. */
static bool gpu_load(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		*functions[i].place = dlsym(library, functions[i].name);
		if (!*functions[i].place)
			return false;
	}
	return true;
}

/* Values that a GPU does not report (power, on some) are -1. */
static void sample_device(unsigned index)
{
	struct schema_host_gpu_row row;
	struct nvml_utilization utilization;
	struct nvml_memory memory;
	unsigned milliwatts;
	void *device;

	if (nvml.handle(index, &device))
		return;
	memset(&row, 0, sizeof(row));
	row.util_pct = nvml.utilization(device, &utilization) ? -1 : (double)utilization.gpu;
	row.power_w = nvml.power(device, &milliwatts) ? -1 : (double)milliwatts / 1000.0;
	if (!nvml.memory(device, &memory)) {
		row.used_bytes = memory.used;
		row.total_bytes = memory.total;
	}
	row.device = index;
	row.ts_ticks = kymo_ticks();
	kymo__append(SCHEMA_HOST_GPU, &row);
}

static uint64_t period_ns(void)
{
	return kymo__load_relaxed(&kymo__process.control->system_period_ns);
}

static void *sample_all(void *unused)
{
	struct timespec pause = { 0, PAUSE_NS };
	uint64_t since_ns = UINT64_MAX / 2;
	unsigned count = 0;

	if (nvml.init())
		kymo__store_relaxed(&stopping, 1);
	while (!kymo__load_relaxed(&stopping)) {
		if (period_ns() && since_ns >= period_ns()) {
			if (nvml.count(&count))
				count = 0;
			for (unsigned i = 0; i < count && i < DEVICES_MOST; i++)
				sample_device(i);
			since_ns = 0;
		}
		nanosleep(&pause, NULL);
		since_ns += PAUSE_NS;
	}
	kymo__store_release(&ended, 1);
	return unused;
}

bool gpu_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (!gpu_load())
		return false;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&thread, &attributes, sample_all, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

void gpu_stop(void)
{
	struct timespec pause = { 0, LAST_PAUSE_NS };

	kymo__store_relaxed(&stopping, 1);
	for (int i = 0; started && i < LAST_PAUSES; i++) {
		if (kymo__load_acquire(&ended))
			return;
		nanosleep(&pause, NULL);
	}
}
