/* Asks what a program may ask, and does what it should not; prints all answers. */
#include "cl.h"

static void say(const char *what, long long answer)
{
	printf("%s: %lld\n", what, answer);
}

static long long queue_number(cl_command_queue queue, cl_command_queue_info what)
{
	cl_ulong value = 0;
	size_t bytes = 0;
	cl_int rc = clGetCommandQueueInfo(queue, what, sizeof(value), &value, &bytes);

	return rc ? rc : (long long)(value * 100 + bytes);
}

static void ask_of_events(cl_command_queue queue, cl_kernel kernel)
{
	const size_t items = 16;
	cl_ulong time = 0;
	cl_event event;
	cl_uint refs = 0;

	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, &event));
	CHECK(clFinish(queue));
	/* How many references there are is the runtime's thread's to say, which may hold one
	   yet. */
	CHECK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	say("referred to", refs > 0);
	say("time",
	    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL));
	say("release", clReleaseEvent(event));
}

static void ask_of_queue(const char *name, cl_command_queue queue, cl_kernel kernel)
{
	puts(name);
	say("properties", queue_number(queue, CL_QUEUE_PROPERTIES));
	say("list", clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, NULL));
	say("small", clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 1, (char[1]){ 0 }, NULL));
	say("references", queue_number(queue, CL_QUEUE_REFERENCE_COUNT));
	say("unknown", queue_number(queue, 0x4711));
	ask_of_events(queue, kernel);
}

static void do_what_is_wrong(cl_command_queue queue, cl_mem buffer, cl_kernel kernel)
{
	const size_t items = 16, odd = 7;
	float data[4];
	cl_int rc = 0;

	say("NULL queue",
	    clEnqueueNDRangeKernel(NULL, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	say("no dimensions",
	    clEnqueueNDRangeKernel(queue, kernel, 0, NULL, &items, NULL, 0, NULL, NULL));
	say("odd size",
	    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &odd, 0, NULL, NULL));
	say("beyond", clEnqueueReadBuffer(queue, buffer, CL_TRUE, 1 << 20, 4, data, 0, NULL, NULL));
	say("NULL target", clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, NULL, 0, NULL, NULL));
	say("map beyond", clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 1 << 20, 4, 0,
					     NULL, NULL, &rc) != NULL);
	say("map's error", rc);
	say("wait for none", clWaitForEvents(0, NULL));
	say("finish NULL", clFinish(NULL));
	say("no bytes", clCreateBuffer(context, CL_MEM_READ_WRITE, 0, NULL, &rc) != NULL);
	say("its error", rc);
	say("bad queue", clCreateCommandQueue(context, device, 1 << 20, &rc) != NULL);
	say("its error", rc);
	say("release NULL", clReleaseCommandQueue(NULL));
}

int main(void)
{
	const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES,
					     CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 };
	cl_command_queue plain, timed, listed, unlisted;
	cl_mem buffer;
	cl_kernel kernel;
	cl_int rc;

	begin();
	buffer = buffer_of(256);
	kernel = kernel_of("twice", buffer, 0);
	plain = queue_with(0);
	timed = queue_with(CL_QUEUE_PROFILING_ENABLE);
	listed = clCreateCommandQueueWithProperties(context, device, list, &rc);
	CHECK(rc);
	unlisted = clCreateCommandQueueWithProperties(context, device, NULL, &rc);
	CHECK(rc);
	ask_of_queue("plain", plain, kernel);
	ask_of_queue("timed", timed, kernel);
	ask_of_queue("listed", listed, kernel);
	ask_of_queue("unlisted", unlisted, kernel);
	do_what_is_wrong(plain, buffer, kernel);
	say("end", clReleaseCommandQueue(plain));
	return 0;
}
