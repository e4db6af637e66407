/* Compares cupti_abi.h with CUPTI's own headers. It compiles if they agree. */
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include "record/cupti/cupti_abi.h"

#define SAME(type, field, own, own_field) \
	_Static_assert(offsetof(type, field) == offsetof(struct own, own_field) && \
			       sizeof(((type *)0)->field) == sizeof(((struct own *)0)->own_field), \
		       #own "." #own_field)

SAME(KERNEL_T, start, cupti_kernel, start);
SAME(KERNEL_T, end, cupti_kernel, end);
SAME(KERNEL_T, deviceId, cupti_kernel, device);
SAME(KERNEL_T, contextId, cupti_kernel, context);
SAME(KERNEL_T, streamId, cupti_kernel, stream);
SAME(KERNEL_T, correlationId, cupti_kernel, correlation);
SAME(KERNEL_T, name, cupti_kernel, name);
SAME(KERNEL_T, queued, cupti_kernel, queued);
SAME(KERNEL_T, submitted, cupti_kernel, submitted);
SAME(KERNEL_T, graphNodeId, cupti_kernel, graph_node);
SAME(KERNEL_T, graphId, cupti_kernel, graph);
SAME(MEMCPY_T, copyKind, cupti_memcpy, copy);
SAME(MEMCPY_T, srcKind, cupti_memcpy, from);
SAME(MEMCPY_T, dstKind, cupti_memcpy, to);
SAME(MEMCPY_T, bytes, cupti_memcpy, bytes);
SAME(MEMCPY_T, start, cupti_memcpy, start);
SAME(MEMCPY_T, streamId, cupti_memcpy, stream);
SAME(MEMCPY_T, correlationId, cupti_memcpy, correlation);
SAME(MEMCPY_T, graphNodeId, cupti_memcpy, graph_node);
SAME(MEMCPY_T, graphId, cupti_memcpy, graph);
SAME(PEER_T, bytes, cupti_memcpy_peer, bytes);
SAME(PEER_T, streamId, cupti_memcpy_peer, stream);
SAME(PEER_T, correlationId, cupti_memcpy_peer, correlation);
SAME(PEER_T, graphId, cupti_memcpy_peer, graph);
SAME(MEMSET_T, bytes, cupti_memset, bytes);
SAME(MEMSET_T, start, cupti_memset, start);
SAME(MEMSET_T, correlationId, cupti_memset, correlation);
SAME(MEMSET_T, memoryKind, cupti_memset, memory);
SAME(MEMSET_T, graphId, cupti_memset, graph);
SAME(SYNCHRONIZATION_T, type, cupti_synchronization, type);
SAME(SYNCHRONIZATION_T, start, cupti_synchronization, start);
SAME(SYNCHRONIZATION_T, correlationId, cupti_synchronization, correlation);
SAME(SYNCHRONIZATION_T, contextId, cupti_synchronization, context);
SAME(SYNCHRONIZATION_T, streamId, cupti_synchronization, stream);
SAME(MEMORY_T, memoryOperationType, cupti_memory, operation);
SAME(MEMORY_T, memoryKind, cupti_memory, memory);
SAME(MEMORY_T, address, cupti_memory, address);
SAME(MEMORY_T, bytes, cupti_memory, bytes);
SAME(MEMORY_T, timestamp, cupti_memory, timestamp);
SAME(MEMORY_T, deviceId, cupti_memory, device);
SAME(GRAPH_T, correlationId, cupti_graph, correlation);
SAME(GRAPH_T, start, cupti_graph, start);
SAME(GRAPH_T, deviceId, cupti_graph, device);
SAME(GRAPH_T, graphId, cupti_graph, graph);
SAME(GRAPH_T, streamId, cupti_graph, stream);
SAME(CUpti_CallbackData, callbackSite, cupti_call_data, site);
SAME(CUpti_CallbackData, functionName, cupti_call_data, function);
SAME(CUpti_CallbackData, functionReturnValue, cupti_call_data, result);
SAME(CUpti_CallbackData, symbolName, cupti_call_data, symbol);
SAME(CUpti_CallbackData, contextUid, cupti_call_data, context_id);
SAME(CUpti_CallbackData, correlationId, cupti_call_data, correlation);

#define NUMBER(theirs, own) _Static_assert((int)(theirs) == (int)(own), #own)
NUMBER(CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_MEMCPY);
NUMBER(CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_MEMSET);
NUMBER(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_CONCURRENT_KERNEL);
NUMBER(CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_MEMCPY_PEER);
NUMBER(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_SYNCHRONIZATION);
NUMBER(CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_MEMORY);
NUMBER(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_GRAPH_TRACE);
NUMBER(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, CUPTI_STREAM_WAITS);
NUMBER(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, CUPTI_RESOURCE_MODULE_UNLOAD);
NUMBER(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CUPTI_MANY_SUBSCRIBERS);

int main(void)
{
	return 0;
}
