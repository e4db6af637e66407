#include "nvtx.h"

/* A table of a module: pointers to the function pointers of one library of the program. */
typedef void **nvtx_table[];

struct nvtx_callbacks {
	size_t struct_size;
	int (*table)(uint32_t module, void ****out_table, unsigned int *out_size);
};

typedef const void *(*nvtx_get_exports)(uint32_t id);
#define EXPORTS_CALLBACKS 1u

enum nvtx_module { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC };

static const struct {
	enum nvtx_module module;
	const struct nvtx_function *functions;
} modules[] = {
	{ CORE, nvtx_core },	 { CORE, nvtx_core_names },   { CORE2, nvtx_core2 },
	{ SYNC, nvtx_sync },	 { CORE2, nvtx_core2_names }, { CUDA, nvtx_cuda },
	{ CUDART, nvtx_cudart }, { OPENCL, nvtx_opencl },
};

static void fill_module(const struct nvtx_callbacks *callbacks, uint32_t module,
			const struct nvtx_function *functions)
{
	void ***table = NULL;
	unsigned int size = 0;

	if (!callbacks->table(module, &table, &size) || !table)
		return;
	for (; functions->function; functions++)
		if (functions->index < size && table[functions->index])
			*table[functions->index] = functions->function;
}

/* Called once for each library of the program. 1 also where nothing could be set: after a 0, NVTX
   unloads this library, in which other libraries may have functions by now. */
static int initialise(nvtx_get_exports get_exports)
{
	const struct nvtx_callbacks *callbacks = get_exports ? get_exports(EXPORTS_CALLBACKS)
							     : NULL;

	if (!callbacks || callbacks->struct_size < sizeof(*callbacks) || !callbacks->table)
		return 1;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		fill_module(callbacks, modules[i].module, modules[i].functions);
	return 1;
}

KYMO__EXPORT int InitializeInjectionNvtx2(nvtx_get_exports get_exports);
int InitializeInjectionNvtx2(nvtx_get_exports get_exports)
{
	return initialise(get_exports);
}

/* The name in version 2, which was a library of its own. */
KYMO__EXPORT int InitializeInjectionNvtx(nvtx_get_exports get_exports);
int InitializeInjectionNvtx(nvtx_get_exports get_exports)
{
	return initialise(get_exports);
}

/* ---- extensions ---- */

struct nvtx_segment {
	size_t id;
	size_t slots;
	intptr_t *functions;
};

struct nvtx_extension {
	uint16_t version;
	uint16_t struct_size;
	uint16_t module;
	uint16_t compatibility; /* major version << 8 | minor version */
	size_t segment_count;
	const struct nvtx_segment *segments;
	void *exports;
	const void *info;
};

#define EXTENSION_PAYLOADS 2u
#define EXTENSION_COUNTERS 4u
#define EXTENSION_MAJOR 1u

static void fill_extension(const struct nvtx_segment *segment,
			   const struct nvtx_function *functions)
{
	for (; functions->function; functions++)
		if (functions->index < segment->slots)
			segment->functions[functions->index] = (intptr_t)functions->function;
}

/* Slots that stay 0 become functions that do nothing. */
KYMO__EXPORT int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension);
int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension)
{
	const struct nvtx_segment *segment;

	if (!extension || extension->struct_size < sizeof(*extension) ||
	    extension->compatibility >> 8 != EXTENSION_MAJOR || !extension->segment_count ||
	    !extension->segments || !extension->segments->functions)
		return 1;
	segment = extension->segments;
	if (extension->module == EXTENSION_PAYLOADS) {
		fill_extension(segment, nvtx_payload_ranges);
		fill_extension(segment, nvtx_payload_schemas);
	} else if (extension->module == EXTENSION_COUNTERS) {
		fill_extension(segment, nvtx_counters);
	}
	return 1;
}
