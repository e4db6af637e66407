/* The decoder on records that CUPTI's headers describe, walked by the real libcupti of argv[1],
   which needs no driver for that. Linked with the objects of libkymo_cupti.so. A torn buffer
   (argv[2]) ends early. */
#include <cupti_activity.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/cupti/cupti.h"

static _Alignas(8) uint8_t buffer[CUPTI_BUFFER_BYTES];
static size_t used;

#define ADD(type, ...) \
	do { \
		const type record = { __VA_ARGS__ }; \
\
		memcpy(buffer + used, &record, sizeof(record)); \
		used += sizeof(record); \
	} while (0)

static void fill(uint64_t base)
{
	for (uint32_t i = 1; i <= 100; i++) {
		uint64_t at = base + i * 10000u;

		ADD(KERNEL_T, .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = at,
		    .end = at + 1000, .deviceId = 0, .contextId = 1, .streamId = 7,
		    .correlationId = 8 * i, .name = "_Z4gemmPfS_i");
		ADD(MEMCPY_T, .kind = CUPTI_ACTIVITY_KIND_MEMCPY, .copyKind = 1, .srcKind = 2,
		    .dstKind = 3, .bytes = 64, .start = at + 1000, .end = at + 1500, .contextId = 1,
		    .streamId = 7, .correlationId = 8 * i + 1);
		ADD(PEER_T, .kind = CUPTI_ACTIVITY_KIND_MEMCPY2, .copyKind = 10, .srcKind = 3,
		    .dstKind = 3, .bytes = 32, .start = at + 1500, .end = at + 1600, .contextId = 1,
		    .streamId = 8, .correlationId = 8 * i + 2);
		ADD(MEMSET_T, .kind = CUPTI_ACTIVITY_KIND_MEMSET, .bytes = 16, .start = at + 1600,
		    .end = at + 1700, .contextId = 1, .streamId = 7, .memoryKind = 3,
		    .correlationId = 8 * i + 3);
		ADD(SYNCHRONIZATION_T, .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, .type = 3,
		    .start = at + 1700, .end = at + 1800, .contextId = 1, .streamId = 7,
		    .correlationId = 8 * i + 4);
		ADD(MEMORY_T, .kind = CUPTI_ACTIVITY_KIND_MEMORY2, .memoryOperationType = 1,
		    .memoryKind = 3, .bytes = 8, .timestamp = at);
		ADD(GRAPH_T, .kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .start = at + 2000,
		    .end = at + 3000, .graphId = 4, .contextId = 1, .streamId = 7,
		    .correlationId = 8 * i + 5);
		ADD(OVERHEAD_T, .kind = CUPTI_ACTIVITY_KIND_OVERHEAD, .start = at, .end = at + 1);
	}
}

static int now(uint64_t *out)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	*out = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
	return 0;
}

static int none_dropped(void *context, uint32_t stream, size_t *out)
{
	(void)context, (void)stream;
	*out = 0;
	return 0;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	uint64_t base = 0;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&cupti_api.cuptiActivityGetNextRecord = dlsym(library,
								"cuptiActivityGetNextRecord");
	cupti_api.cuptiGetTimestamp = now;
	cupti_api.cuptiActivityGetNumDroppedRecords = none_dropped;
	now(&base);
	fill(base);
	if (argc == 2) {
		uint8_t *first = NULL;
		int rc = cupti_api.cuptiActivityGetNextRecord(buffer, used, &first);

		if (rc)
			printf("cuptiActivityGetNextRecord returned %d\n", rc);
	}
	cupti_decode(buffer, argc > 2 ? (size_t)atol(argv[2]) : used);
	cupti_decode_end();
	return 0;
}
