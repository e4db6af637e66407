/* Kernels that are made for one launch and released before it is done: the next one may lie where
   the last one lay. */
#include "cl.h"

static void launch(cl_command_queue queue, cl_mem buffer, const char *name)
{
	const size_t items = 64;
	cl_kernel kernel = kernel_of(name, buffer, strcmp(name, "spin") ? 0 : 10);

	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	CHECK(clReleaseKernel(kernel));
}

int main(void)
{
	cl_command_queue queue;
	cl_mem buffer;

	begin();
	queue = queue_with(0);
	buffer = buffer_of(64 * sizeof(float));
	for (int i = 0; i < 20; i++) {
		launch(queue, buffer, i % 2 ? "spin" : "twice");
		CHECK(clFinish(queue));
	}
	return 0;
}
