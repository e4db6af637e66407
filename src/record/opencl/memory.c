/* Device memory. The runtime reports the end of a buffer; the program frees SVM. */
#include "record/opencl/layer.h"

/* Size and device of an allocation in one word. */
#define DEVICE_BITS 7u

static void went(uint64_t word, const char *kind)
{
	kymo_device_memory((uint32_t)(word & ((1u << DEVICE_BITS) - 1)), kind,
			   -(int64_t)(word >> DEVICE_BITS));
}

static void CL_CALLBACK buffer_gone(cl_mem object, void *word)
{
	(void)object;
	went((uint64_t)(uintptr_t)word, "buffer");
}

static void CL_CALLBACK image_gone(cl_mem object, void *word)
{
	(void)object;
	went((uint64_t)(uintptr_t)word, "image");
}

static cl_mem made_as(cl_mem object, cl_context context, const char *kind,
		      void(CL_CALLBACK *gone)(cl_mem, void *))
{
	struct layer_device *device;
	size_t bytes = 0;
	uint64_t word;

	if (!object || !next.clSetMemObjectDestructorCallback ||
	    !(device = device_of_context(context)) ||
	    next.clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL))
		return object;
	word = (uint64_t)bytes << DEVICE_BITS | device->id;
	if (!next.clSetMemObjectDestructorCallback(object, gone, (void *)(uintptr_t)word))
		kymo_device_memory(device->id, kind, (int64_t)bytes);
	return object;
}

static cl_mem made(cl_mem buffer, cl_context context)
{
	return made_as(buffer, context, "buffer", buffer_gone);
}

static cl_mem made_image(cl_mem image, cl_context context)
{
	return made_as(image, context, "image", image_gone);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
					void *host, cl_int *out_rc)
{
	return made(next.clCreateBuffer(context, flags, bytes, host, out_rc), context);
}

static cl_mem CL_API_CALL create_buffer_with(cl_context context, const cl_mem_properties *list,
					     cl_mem_flags flags, size_t bytes, void *host,
					     cl_int *out_rc)
{
	return made(next.clCreateBufferWithProperties(context, list, flags, bytes, host, out_rc),
		    context);
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
				       const cl_image_format *format, const cl_image_desc *desc,
				       void *host, cl_int *out_rc)
{
	cl_mem image = next.clCreateImage(context, flags, format, desc, host, out_rc);

	/* An image of a buffer has no memory of its own. */
	return image && desc && desc->mem_object ? image : made_image(image, context);
}

static cl_mem CL_API_CALL create_image_with(cl_context context, const cl_mem_properties *list,
					    cl_mem_flags flags, const cl_image_format *format,
					    const cl_image_desc *desc, void *host, cl_int *out_rc)
{
	cl_mem image = next.clCreateImageWithProperties(context, list, flags, format, desc, host,
							out_rc);

	return image && desc && desc->mem_object ? image : made_image(image, context);
}

static cl_mem CL_API_CALL create_image_2d(cl_context context, cl_mem_flags flags,
					  const cl_image_format *format, size_t width,
					  size_t height, size_t row, void *host, cl_int *out_rc)
{
	return made_image(
		next.clCreateImage2D(context, flags, format, width, height, row, host, out_rc),
		context);
}

static cl_mem CL_API_CALL create_image_3d(cl_context context, cl_mem_flags flags,
					  const cl_image_format *format, size_t width,
					  size_t height, size_t depth, size_t row, size_t slice,
					  void *host, cl_int *out_rc)
{
	return made_image(next.clCreateImage3D(context, flags, format, width, height, depth, row,
					       slice, host, out_rc),
			  context);
}

static void *CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes,
				   cl_uint alignment)
{
	void *at = next.clSVMAlloc(context, flags, bytes, alignment);
	struct layer_device *device = at ? device_of_context(context) : NULL;

	if (device) {
		map_put(&svm_map, at, (uint64_t)bytes << DEVICE_BITS | device->id);
		kymo_device_memory(device->id, "svm", (int64_t)bytes);
	}
	return at;
}

static void svm_gone(void *at)
{
	uint64_t word = map_take(&svm_map, at);

	if (word)
		went(word, "svm");
}

uint64_t svm_bytes(const void *at)
{
	return map_get(&svm_map, at) >> DEVICE_BITS;
}

static void CL_API_CALL svm_free(cl_context context, void *at)
{
	svm_gone(at);
	next.clSVMFree(context, at);
}

/* If the program frees with its own function, that calls clSVMFree(), which is counted. */
static cl_int CL_API_CALL enqueue_svm_free(cl_command_queue queue, cl_uint places, void *at[],
					   void(CL_CALLBACK *function)(cl_command_queue, cl_uint,
								       void *[], void *),
					   void *data, cl_uint count, const cl_event *list,
					   cl_event *event)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_OTHER, 0, count > 0);
	for (cl_uint i = 0; at && i < places && !function; i++)
		svm_gone(at[i]);
	return call_end(&call,
			next.clEnqueueSVMFree(queue, places, at, function, data, count, list,
					      call_event(&call, event)),
			event);
}

#define HOOK(function, ours) \
	if (table->function) \
	table->function = (ours)

void memory_hook(cl_icd_dispatch *table)
{
	HOOK(clCreateBuffer, create_buffer);
	HOOK(clCreateBufferWithProperties, create_buffer_with);
	HOOK(clCreateImage, create_image);
	HOOK(clCreateImageWithProperties, create_image_with);
	HOOK(clCreateImage2D, create_image_2d);
	HOOK(clCreateImage3D, create_image_3d);
	HOOK(clSVMAlloc, svm_alloc);
	HOOK(clSVMFree, svm_free);
	HOOK(clEnqueueSVMFree, enqueue_svm_free);
}
