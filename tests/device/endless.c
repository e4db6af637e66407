/* Works until it is killed; says "at work" once it is. With an argument it ends by itself instead,
   in the midst of it. */
#include "cl.h"

#include <unistd.h>

int main(int argc, char **argv)
{
	cl_command_queue queue;
	cl_kernel kernel;
	const size_t items = 64;

	(void)argv;
	begin();
	queue = queue_with(0);
	kernel = kernel_of("twice", buffer_of(4096), 0);
	for (long i = 0;; i++) {
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
		CHECK(clFinish(queue));
		if (i == 200 && write(1, "at work\n", 8) != 8)
			return 1;
		if (i == 300 && argc > 1)
			exit(7);
	}
}
