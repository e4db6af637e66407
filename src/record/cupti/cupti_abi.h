/*
 * CUPTI's binary interface, as far as it is used: results, ids, and the beginnings of the activity
 * records, which are the same in 11.8 to 13.4. kymo is built without CUDA's headers;
 * tests/cupti/layout.c compares these offsets with them.
 */
#ifndef KYMO_RECORD_CUPTI_CUPTI_ABI_H
#define KYMO_RECORD_CUPTI_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CUPTI_OK 0
#define CUPTI_MANY_SUBSCRIBERS 39 /* another tool has subscribed, and only one may */
#define CUPTI_FLUSH_FORCED 1u
#define CUPTI_NO_STREAM UINT32_MAX

enum cupti_domain {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_DOMAIN_COUNT = 7,
};
#define CUPTI_RESOURCE_MODULE_UNLOAD 7u
#define CUPTI_CALLBACKS_MOST 2048u /* ids of a domain; 13.4 has 806 */

enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_KERNEL = 3,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_OVERHEAD = 17,
	CUPTI_MEMCPY_PEER = 22,
	CUPTI_SYNCHRONIZATION = 38,
	CUPTI_MEMORY = 49, /* version 2 */
	CUPTI_GRAPH_TRACE = 51,
};

struct cupti_kernel {
	uint32_t kind;
	uint8_t unused[12];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	uint32_t unused_launch[10]; /* grid, block, memory */
	uint32_t correlation;
	int64_t grid;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint64_t unused_memory;
	uint64_t graph_node;
	uint32_t unused_limit;
	uint32_t graph;
};

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint32_t runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t unused;
};

struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t unused;
};

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t unused;
};

enum cupti_wait { CUPTI_WAIT_EVENT = 1, CUPTI_STREAM_WAITS = 2, CUPTI_WAIT_STREAM = 3 };

struct cupti_synchronization {
	uint32_t kind;
	uint32_t type; /* enum cupti_wait; 4: the context */
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

struct cupti_memory {
	uint32_t kind;
	uint32_t operation; /* 1: allocation, 2: release */
	uint32_t memory;
	uint32_t correlation;
	uint64_t address, bytes, timestamp, pc;
	uint32_t process, device, context, stream;
};

struct cupti_graph {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
};

struct cupti_overhead {
	uint32_t kind, what, object;
	uint32_t ids[3];
	uint64_t start, end;
};

#define CUPTI_OFFSET(type, field, at) \
	_Static_assert(offsetof(struct type, field) == (at), #type "." #field)
CUPTI_OFFSET(cupti_kernel, start, 16);
CUPTI_OFFSET(cupti_kernel, device, 40);
CUPTI_OFFSET(cupti_kernel, stream, 48);
CUPTI_OFFSET(cupti_kernel, correlation, 92);
CUPTI_OFFSET(cupti_kernel, name, 104);
CUPTI_OFFSET(cupti_kernel, queued, 120);
CUPTI_OFFSET(cupti_kernel, graph_node, 144);
CUPTI_OFFSET(cupti_kernel, graph, 156);
CUPTI_OFFSET(cupti_memcpy, correlation, 44);
CUPTI_OFFSET(cupti_memcpy, graph, 72);
CUPTI_OFFSET(cupti_memcpy_peer, correlation, 60);
CUPTI_OFFSET(cupti_memset, correlation, 44);
CUPTI_OFFSET(cupti_synchronization, correlation, 24);
CUPTI_OFFSET(cupti_synchronization, event, 36);
CUPTI_OFFSET(cupti_memory, timestamp, 32);
CUPTI_OFFSET(cupti_memory, device, 52);
CUPTI_OFFSET(cupti_graph, device, 24);
CUPTI_OFFSET(cupti_overhead, start, 24);

/* Passed to the callback of a call of the runtime or the driver. */
struct cupti_call_data {
	uint32_t site; /* 0: enter, 1: exit */
	const char *function;
	const void *parameters;
	const int *result; /* at exit */
	const char *symbol; /* the kernel, if it launches one */
	void *context;
	uint32_t context_id;
	uint64_t *between; /* shared by enter and exit */
	uint32_t correlation;
};
CUPTI_OFFSET(cupti_call_data, symbol, 32);
CUPTI_OFFSET(cupti_call_data, context_id, 48);
CUPTI_OFFSET(cupti_call_data, correlation, 64);

/* For cuptiSubscribe_v2(). */
struct cupti_subscriber_params {
	size_t bytes;
	const char *name;
	char *other_name; /* out: of the tool that has subscribed */
	size_t other_bytes;
	uint8_t several;
	uint8_t padding[7];
};

typedef struct cupti_subscriber *cupti_handle;
typedef void cupti_callback(void *user, uint32_t domain, uint32_t id, const void *data);
typedef void cupti_buffer_request(uint8_t **out_buffer, size_t *out_bytes, size_t *out_records);
typedef void cupti_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
				   size_t valid_bytes);
typedef void cupti_buffer_request_2(uint8_t **out_buffer, size_t *out_bytes, size_t *out_records,
				    void *info);
typedef void cupti_buffer_complete_2(uint8_t *buffer, size_t bytes, size_t valid_bytes, void *info);
typedef uint64_t cupti_clock(void);

/* One list for the pointers and their names. Those of OPTIONAL are missing in some versions. */
#define CUPTI_FUNCTIONS(NEEDED, OPTIONAL) \
	NEEDED(cuptiSubscribe, (cupti_handle *, cupti_callback *, void *)) \
	NEEDED(cuptiUnsubscribe, (cupti_handle)) \
	NEEDED(cuptiEnableCallback, (uint32_t, cupti_handle, uint32_t, uint32_t)) \
	NEEDED(cuptiEnableDomain, (uint32_t, cupti_handle, uint32_t)) \
	NEEDED(cuptiGetCallbackName, (uint32_t, uint32_t, const char **)) \
	NEEDED(cuptiActivityRegisterCallbacks, (cupti_buffer_request *, cupti_buffer_complete *)) \
	NEEDED(cuptiActivityEnable, (uint32_t)) \
	NEEDED(cuptiActivityDisable, (uint32_t)) \
	NEEDED(cuptiActivityFlushAll, (uint32_t)) \
	NEEDED(cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **)) \
	NEEDED(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *)) \
	NEEDED(cuptiGetTimestamp, (uint64_t *)) \
	OPTIONAL(cuptiFinalize, (void)) \
	OPTIONAL(cuptiGetResultString, (int, const char **)) \
	OPTIONAL(cuptiActivityFlushPeriod, (uint32_t)) \
	OPTIONAL(cuptiActivityRegisterTimestampCallback, (cupti_clock *)) \
	OPTIONAL(cuptiSubscribe_v2, \
		 (cupti_handle *, cupti_callback *, void *, struct cupti_subscriber_params *)) \
	OPTIONAL(cuptiActivityRegisterCallbacks_v2, \
		 (cupti_handle, cupti_buffer_request_2 *, cupti_buffer_complete_2 *)) \
	OPTIONAL(cuptiActivityEnable_v2, (cupti_handle, uint32_t, void *)) \
	OPTIONAL(cuptiActivityDisable_v2, (cupti_handle, uint32_t, void *)) \
	OPTIONAL(cuptiActivityGetNextRecord_v2, (cupti_handle, uint8_t *, size_t, uint8_t **))

struct cupti_api {
#define X(name, arguments) int(*name) arguments;
	CUPTI_FUNCTIONS(X, X)
#undef X
};

#endif
