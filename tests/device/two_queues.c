/* Two queues that work at the same time; prints what OpenCL itself says of each operation, as
   QUEUE NAME BYTES QUEUED SUBMIT START END, in ns of the device's clock. */
#include "cl.h"

#define COUNT 6
#define FLOATS 65536

int main(void)
{
	const cl_command_queue_properties how = CL_QUEUE_PROFILING_ENABLE;
	cl_command_queue queues[2];
	cl_event events[2][COUNT + 2];
	static float data[2][FLOATS];
	const size_t items = FLOATS;

	begin();
	for (int q = 0; q < 2; q++)
		queues[q] = queue_with(how);
	for (int q = 0; q < 2; q++) {
		cl_mem buffer = buffer_of(sizeof(data[q]));
		cl_kernel kernel = kernel_of(q ? "spin" : "twice", buffer, q ? 50 : 0);

		CHECK(clEnqueueWriteBuffer(queues[q], buffer, CL_FALSE, 0, sizeof(data[q]), data[q],
					   0, NULL, &events[q][0]));
		for (int i = 0; i < COUNT; i++)
			CHECK(clEnqueueNDRangeKernel(queues[q], kernel, 1, NULL, &items, NULL, 0,
						     NULL, &events[q][1 + i]));
		CHECK(clEnqueueReadBuffer(queues[q], buffer, CL_FALSE, 0, sizeof(data[q]), data[q],
					  0, NULL, &events[q][COUNT + 1]));
		CHECK(clFlush(queues[q]));
	}
	for (int q = 0; q < 2; q++)
		CHECK(clFinish(queues[q]));
	for (int q = 0; q < 2; q++)
		for (int i = 0; i < COUNT + 2; i++) {
			cl_event event = events[q][i];

			printf("%d %s %llu %llu %llu %llu\n", q,
			       i == 0		? "write"
			       : i == COUNT + 1 ? "read"
			       : q		? "spin"
						: "twice",
			       event_time(event, CL_PROFILING_COMMAND_QUEUED),
			       event_time(event, CL_PROFILING_COMMAND_SUBMIT),
			       event_time(event, CL_PROFILING_COMMAND_START),
			       event_time(event, CL_PROFILING_COMMAND_END));
			CHECK(clReleaseEvent(event));
		}
	return 0;
}
