/* Operations that are launched from zones inside of zones, at a step, and from one that never
   ends. */
#include "cl.h"

#include <kymo/kymo.h>

static cl_command_queue queue;
static cl_mem buffer;
static cl_kernel kernel;
static float data[64];

static void compute(void)
{
	const size_t items = 64;

	KYMO_SCOPE("compute");
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void load(void)
{
	KYMO_SCOPE("load");
	CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL));
	compute();
}

int main(void)
{
	begin();
	queue = queue_with(0);
	buffer = buffer_of(sizeof(data));
	kernel = kernel_of("twice", buffer, 0);
	compute();
	for (int i = 0; i < 2; i++) {
		kymo_step(NULL);
		load();
		compute();
	}
	kymo_step_end(NULL);
	CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL));
	{
		KYMO_SCOPE("never ends");
		compute();
		CHECK(clFinish(queue));
		_Exit(0);
	}
}
