/* Calls that enqueue or wait. Each calls the runtime, with kymo's event if the program passes
   none. */
#include "record/opencl/layer.h"

#define WAITS cl_uint count, const cl_event *list, cl_event *event
/* The runtime's call, between call_begin() and call_end(). */
#define FRAMED(call, expression) call_end(&(call), (expression), event)
#define EVENT count, list, call_event(&call, event)

static uint64_t volume(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

static uint64_t enqueue_image_bytes(cl_mem image, const size_t *region)
{
	size_t element = 0;

	if (!region || !kymo_device_enabled() ||
	    next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element, NULL))
		return 0;
	return volume(region) * element;
}

static uint64_t objects_bytes(cl_uint mems, const cl_mem *list)
{
	uint64_t all = 0;
	size_t bytes;

	for (cl_uint i = 0; list && i < mems && kymo_device_enabled(); i++)
		if (!next.clGetMemObjectInfo(list[i], CL_MEM_SIZE, sizeof(bytes), &bytes, NULL))
			all += bytes;
	return all;
}

/* A size of 0, or none, means all of it. */
static uint64_t places_bytes(cl_uint places, const void **at, const size_t *bytes)
{
	uint64_t all = 0;

	for (cl_uint i = 0; at && i < places && kymo_device_enabled(); i++)
		all += bytes && bytes[i] ? bytes[i] : svm_bytes(at[i]);
	return all;
}

/* ---- kernels ------------------------------------------------------------------------------- */

static cl_int CL_API_CALL ndrange(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
				  const size_t *offset, const size_t *global, const size_t *local,
				  WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_KERNEL, 0, count > 0);
	call_kernel(&call, kernel);
	return FRAMED(call, next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
							local, EVENT));
}

static cl_int CL_API_CALL task(cl_command_queue queue, cl_kernel kernel, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_KERNEL, 0, count > 0);
	call_kernel(&call, kernel);
	return FRAMED(call, next.clEnqueueTask(queue, kernel, EVENT));
}

static cl_int CL_API_CALL native(cl_command_queue queue, void(CL_CALLBACK *function)(void *),
				 void *args, size_t bytes, cl_uint mems, const cl_mem *mem_list,
				 const void **places, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_NATIVE, 0, count > 0);
	return FRAMED(call, next.clEnqueueNativeKernel(queue, function, args, bytes, mems, mem_list,
						       places, EVENT));
}

/* ---- reads, writes, copies, fills ------------------------------------------------------------ */

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
				      size_t offset, size_t bytes, void *to, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_READ, bytes, count > 0);
	call_waits(&call, blocking, "clEnqueueReadBuffer");
	return FRAMED(call,
		      next.clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, to, EVENT));
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
				       size_t offset, size_t bytes, const void *from, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_WRITE, bytes, count > 0);
	call_waits(&call, blocking, "clEnqueueWriteBuffer");
	return FRAMED(call, next.clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, from,
						      EVENT));
}

#define RECT \
	const size_t *buffer_origin, const size_t *host_origin, const size_t *region, \
		size_t buffer_row, size_t buffer_slice, size_t host_row, size_t host_slice
#define RECT_GIVEN \
	buffer_origin, host_origin, region, buffer_row, buffer_slice, host_row, host_slice

static cl_int CL_API_CALL read_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, RECT,
				    void *to, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_READ, volume(region), count > 0);
	call_waits(&call, blocking, "clEnqueueReadBufferRect");
	return FRAMED(call,
		      next.clEnqueueReadBufferRect(queue, buffer, blocking, RECT_GIVEN, to, EVENT));
}

static cl_int CL_API_CALL write_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, RECT,
				     const void *from, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_WRITE, volume(region), count > 0);
	call_waits(&call, blocking, "clEnqueueWriteBufferRect");
	return FRAMED(call, next.clEnqueueWriteBufferRect(queue, buffer, blocking, RECT_GIVEN, from,
							  EVENT));
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
				      size_t from_offset, size_t to_offset, size_t bytes, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_COPY, bytes, count > 0);
	return FRAMED(call, next.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes,
						     EVENT));
}

static cl_int CL_API_CALL copy_rect(cl_command_queue queue, cl_mem from, cl_mem to, RECT, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_COPY, volume(region), count > 0);
	return FRAMED(call, next.clEnqueueCopyBufferRect(queue, from, to, RECT_GIVEN, EVENT));
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void *pattern,
				      size_t pattern_bytes, size_t offset, size_t bytes, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_FILL, bytes, count > 0);
	return FRAMED(call, next.clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset,
						     bytes, EVENT));
}

/* ---- images ---------------------------------------------------------------------------------- */

static cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
				     const size_t *origin, const size_t *region, size_t row,
				     size_t slice, void *to, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_READ, enqueue_image_bytes(image, region), count > 0);
	call_waits(&call, blocking, "clEnqueueReadImage");
	return FRAMED(call, next.clEnqueueReadImage(queue, image, blocking, origin, region, row,
						    slice, to, EVENT));
}

static cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
				      const size_t *origin, const size_t *region, size_t row,
				      size_t slice, const void *from, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_WRITE, enqueue_image_bytes(image, region), count > 0);
	call_waits(&call, blocking, "clEnqueueWriteImage");
	return FRAMED(call, next.clEnqueueWriteImage(queue, image, blocking, origin, region, row,
						     slice, from, EVENT));
}

static cl_int CL_API_CALL copy_image(cl_command_queue queue, cl_mem from, cl_mem to,
				     const size_t *from_origin, const size_t *to_origin,
				     const size_t *region, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_COPY, enqueue_image_bytes(from, region), count > 0);
	return FRAMED(call, next.clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region,
						    EVENT));
}

static cl_int CL_API_CALL image_to_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
					  const size_t *origin, const size_t *region, size_t offset,
					  WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_COPY, enqueue_image_bytes(from, region), count > 0);
	return FRAMED(call, next.clEnqueueCopyImageToBuffer(queue, from, to, origin, region, offset,
							    EVENT));
}

static cl_int CL_API_CALL buffer_to_image(cl_command_queue queue, cl_mem from, cl_mem to,
					  size_t offset, const size_t *origin, const size_t *region,
					  WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_COPY, enqueue_image_bytes(to, region), count > 0);
	return FRAMED(call, next.clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region,
							    EVENT));
}

static cl_int CL_API_CALL fill_image(cl_command_queue queue, cl_mem image, const void *colour,
				     const size_t *origin, const size_t *region, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_FILL, enqueue_image_bytes(image, region), count > 0);
	return FRAMED(call, next.clEnqueueFillImage(queue, image, colour, origin, region, EVENT));
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
				    cl_map_flags flags, size_t offset, size_t bytes, WAITS,
				    cl_int *out_rc)
{
	struct call call;
	cl_int rc = CL_SUCCESS;
	void *at;

	call_begin(&call, queue, KYMO_DEVICE_MAP, bytes, count > 0);
	call_waits(&call, blocking, "clEnqueueMapBuffer");
	at = next.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, EVENT, &rc);
	FRAMED(call, rc);
	if (out_rc)
		*out_rc = rc;
	return at;
}

static void *CL_API_CALL map_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
				   cl_map_flags flags, const size_t *origin, const size_t *region,
				   size_t *row, size_t *slice, WAITS, cl_int *out_rc)
{
	struct call call;
	cl_int rc = CL_SUCCESS;
	void *at;

	call_begin(&call, queue, KYMO_DEVICE_MAP, enqueue_image_bytes(image, region), count > 0);
	call_waits(&call, blocking, "clEnqueueMapImage");
	at = next.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice,
				    EVENT, &rc);
	FRAMED(call, rc);
	if (out_rc)
		*out_rc = rc;
	return at;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem object, void *at, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_UNMAP, 0, count > 0);
	return FRAMED(call, next.clEnqueueUnmapMemObject(queue, object, at, EVENT));
}

static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint mems, const cl_mem *mem_list,
				  cl_mem_migration_flags flags, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_MIGRATE, objects_bytes(mems, mem_list), count > 0);
	return FRAMED(call, next.clEnqueueMigrateMemObjects(queue, mems, mem_list, flags, EVENT));
}

/* ---- markers, barriers ---- */

static cl_int CL_API_CALL marker_with_list(cl_command_queue queue, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_MARKER, 0, count > 0);
	return FRAMED(call, next.clEnqueueMarkerWithWaitList(queue, EVENT));
}

static cl_int CL_API_CALL barrier_with_list(cl_command_queue queue, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_BARRIER, 0, count > 0);
	return FRAMED(call, next.clEnqueueBarrierWithWaitList(queue, EVENT));
}

/* In OpenCL 1.0 a marker without an event is an error, and stays one. */
static cl_int CL_API_CALL marker(cl_command_queue queue, cl_event *event)
{
	struct call call;

	if (!event)
		return next.clEnqueueMarker(queue, event);
	call_begin(&call, queue, KYMO_DEVICE_MARKER, 0, false);
	return FRAMED(call, next.clEnqueueMarker(queue, call_event(&call, event)));
}

/* ---- shared virtual memory ---- */

static cl_int CL_API_CALL svm_copy(cl_command_queue queue, cl_bool blocking, void *to,
				   const void *from, size_t bytes, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_COPY, bytes, count > 0);
	call_waits(&call, blocking, "clEnqueueSVMMemcpy");
	return FRAMED(call, next.clEnqueueSVMMemcpy(queue, blocking, to, from, bytes, EVENT));
}

static cl_int CL_API_CALL svm_fill(cl_command_queue queue, void *to, const void *pattern,
				   size_t pattern_bytes, size_t bytes, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_FILL, bytes, count > 0);
	return FRAMED(call,
		      next.clEnqueueSVMMemFill(queue, to, pattern, pattern_bytes, bytes, EVENT));
}

static cl_int CL_API_CALL svm_map_call(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
				       void *at, size_t bytes, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_MAP, bytes, count > 0);
	call_waits(&call, blocking, "clEnqueueSVMMap");
	return FRAMED(call, next.clEnqueueSVMMap(queue, blocking, flags, at, bytes, EVENT));
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue queue, void *at, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_UNMAP, 0, count > 0);
	return FRAMED(call, next.clEnqueueSVMUnmap(queue, at, EVENT));
}

static cl_int CL_API_CALL svm_migrate(cl_command_queue queue, cl_uint places, const void **at,
				      const size_t *bytes, cl_mem_migration_flags flags, WAITS)
{
	struct call call;

	call_begin(&call, queue, KYMO_DEVICE_MIGRATE, places_bytes(places, at, bytes), count > 0);
	return FRAMED(call, next.clEnqueueSVMMigrateMem(queue, places, at, bytes, flags, EVENT));
}

/* ---- waiting ---- */

static cl_int CL_API_CALL finish_queue(cl_command_queue handle)
{
	struct layer_queue *queue = queue_of(handle);
	struct waiting waiting;
	cl_int rc;

	wait_begin(&waiting, queue, "clFinish");
	rc = next.clFinish(handle);
	wait_end(&waiting);
	return rc;
}

static struct layer_queue *queue_of_event(cl_event event)
{
	cl_command_queue queue = NULL;

	if (next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), (void *)&queue, NULL))
		return NULL;
	return queue ? queue_of(queue) : NULL;
}

/* The wait is attributed to the queue of the last event; another event may take longer. */
static cl_int CL_API_CALL enqueue_wait_for(cl_uint count, const cl_event *list)
{
	struct layer_queue *queue = NULL;
	struct waiting waiting;
	cl_int rc;

	if (kymo_device_enabled() && list && count)
		queue = queue_of_event(list[count - 1]);
	wait_begin(&waiting, queue, "clWaitForEvents");
	rc = next.clWaitForEvents(count, list);
	wait_end(&waiting);
	return rc;
}

static cl_int CL_API_CALL flush_queue(cl_command_queue handle)
{
	struct layer_queue *queue = queue_of(handle);
	cl_int rc = next.clFlush(handle);

	if (queue)
		pending_look(queue);
	return rc;
}

#define HOOK(function, ours) \
	if (table->function) \
	table->function = (ours)

void enqueue_hook(cl_icd_dispatch *table)
{
	HOOK(clEnqueueNDRangeKernel, ndrange);
	HOOK(clEnqueueTask, task);
	HOOK(clEnqueueNativeKernel, native);
	HOOK(clEnqueueReadBuffer, read_buffer);
	HOOK(clEnqueueWriteBuffer, write_buffer);
	HOOK(clEnqueueReadBufferRect, read_rect);
	HOOK(clEnqueueWriteBufferRect, write_rect);
	HOOK(clEnqueueCopyBuffer, copy_buffer);
	HOOK(clEnqueueCopyBufferRect, copy_rect);
	HOOK(clEnqueueFillBuffer, fill_buffer);
	HOOK(clEnqueueReadImage, read_image);
	HOOK(clEnqueueWriteImage, write_image);
	HOOK(clEnqueueCopyImage, copy_image);
	HOOK(clEnqueueCopyImageToBuffer, image_to_buffer);
	HOOK(clEnqueueCopyBufferToImage, buffer_to_image);
	HOOK(clEnqueueFillImage, fill_image);
	HOOK(clEnqueueMapBuffer, map_buffer);
	HOOK(clEnqueueMapImage, map_image);
	HOOK(clEnqueueUnmapMemObject, unmap);
	HOOK(clEnqueueMigrateMemObjects, migrate);
	HOOK(clEnqueueMarkerWithWaitList, marker_with_list);
	HOOK(clEnqueueBarrierWithWaitList, barrier_with_list);
	HOOK(clEnqueueMarker, marker);
	HOOK(clEnqueueSVMMemcpy, svm_copy);
	HOOK(clEnqueueSVMMemFill, svm_fill);
	HOOK(clEnqueueSVMMap, svm_map_call);
	HOOK(clEnqueueSVMUnmap, svm_unmap);
	HOOK(clEnqueueSVMMigrateMem, svm_migrate);
	HOOK(clFinish, finish_queue);
	HOOK(clWaitForEvents, enqueue_wait_for);
	HOOK(clFlush, flush_queue);
}
