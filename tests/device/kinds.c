/* Each kind of command once, on an in-order queue; prints a sum of what came out. */
#include "cl.h"

#define BYTES 4096

static void CL_CALLBACK nothing(void *args)
{
	(void)args;
}

int main(void)
{
	cl_command_queue queue;
	cl_mem a, b;
	cl_kernel kernel;
	const size_t items = 16, origin[3] = { 0, 0, 0 }, region[3] = { 16, 4, 1 };
	static unsigned char data[BYTES];
	unsigned sum = 0;
	float one = 1;
	cl_int rc;
	char *at;

	begin();
	queue = queue_with(0);
	a = buffer_of(BYTES);
	b = buffer_of(BYTES);
	kernel = kernel_of("twice", a, 0);
	CHECK(clEnqueueFillBuffer(queue, a, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	CHECK(clEnqueueCopyBuffer(queue, a, b, 0, 0, 100, 0, NULL, NULL));
	CHECK(clEnqueueCopyBufferRect(queue, a, b, origin, origin, region, 32, 0, 32, 0, 0, NULL,
				      NULL));
	CHECK(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL));
	CHECK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
	CHECK(clEnqueueMigrateMemObjects(queue, 1, &a, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL));
	CHECK(clEnqueueNativeKernel(queue, nothing, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
	at = clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_WRITE, 0, 512, 0, NULL, NULL, &rc);
	CHECK(rc);
	at[0] = 3;
	CHECK(clEnqueueUnmapMemObject(queue, a, at, 0, NULL, NULL));
	CHECK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, BYTES, data, 0, NULL, NULL));
	for (int i = 0; i < BYTES; i++)
		sum += data[i];
	CHECK(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, 2048, data, 0, NULL, NULL));
	CHECK(clEnqueueReadBufferRect(queue, a, CL_FALSE, origin, origin, region, 32, 0, 32, 0,
				      data, 0, NULL, NULL));
	CHECK(clEnqueueWriteBufferRect(queue, a, CL_FALSE, origin, origin, region, 32, 0, 32, 0,
				       data, 0, NULL, NULL));
	CHECK(clFinish(queue));
	CHECK(clReleaseMemObject(a));
	CHECK(clReleaseMemObject(b));
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseCommandQueue(queue));
	CHECK(clReleaseProgram(program));
	CHECK(clReleaseContext(context));
	printf("%u\n", sum);
	return 0;
}
