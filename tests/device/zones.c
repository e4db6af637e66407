/* A program that marks zones and uses OpenCL: each operation belongs to the zone that was open when
   it was queued. */
#include "cl.h"

#include <kymo/kymo.h>

int main(void)
{
	cl_command_queue queue;
	cl_mem buffer;
	cl_kernel kernel;
	const size_t items = 64;
	float data[64] = { 0 };

	begin();
	queue = queue_with(0);
	buffer = buffer_of(sizeof(data));
	kernel = kernel_of("twice", buffer, 0);
	{
		KYMO_SCOPE("load");
		CHECK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL,
					   NULL));
	}
	for (int i = 0; i < 3; i++) {
		KYMO_SCOPE("forward");
		kymo_step(NULL);
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	}
	kymo_step_end(NULL);
	CHECK(clFinish(queue));
	return 0;
}
