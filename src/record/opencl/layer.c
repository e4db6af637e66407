/* The function table that the loader calls instead of the runtime's. */
#include "record/opencl/layer.h"

#include <string.h>

cl_icd_dispatch next;
static cl_icd_dispatch table;

#define ENTRIES (sizeof(cl_icd_dispatch) / sizeof(void *))
static const char layer_name[] = "kymo";

KYMO__EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t bytes,
							    void *out, size_t *out_bytes)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	const void *value = what == CL_LAYER_API_VERSION ? (const void *)&version : layer_name;
	size_t size = what == CL_LAYER_API_VERSION ? sizeof(version) : sizeof(layer_name);

	if (what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME)
		return CL_INVALID_VALUE;
	if (out && bytes < size)
		return CL_INVALID_VALUE;
	if (out)
		memcpy(out, value, size);
	if (out_bytes)
		*out_bytes = size;
	return CL_SUCCESS;
}

/* A loader of an older OpenCL has a shorter table: functions beyond it are NULL, and stay so. */
KYMO__EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries,
							 const cl_icd_dispatch *target,
							 cl_uint *out_entries,
							 const cl_icd_dispatch **out_table)
{
	size_t known = entries < ENTRIES ? entries : ENTRIES;

	if (!target || !out_entries || !out_table)
		return CL_INVALID_VALUE;
	memcpy(&next, target, known * sizeof(void *));
	table = next;
	objects_hook(&table);
	memory_hook(&table);
	enqueue_hook(&table);
	*out_entries = (cl_uint)known;
	*out_table = &table;
	return CL_SUCCESS;
}
