/* Four threads, two contexts, queues in and out of order, events that are released at once or
   wanted by nobody, and user events that hold all of it back. Prints what each thread computed. */
#include "cl.h"

#include <pthread.h>

#define THREADS 4
#define TURNS 200
#define FLOATS 256

static cl_context contexts[2];
static cl_program programs[2];
static double sums[THREADS];

static void wait_in_order(cl_command_queue queue, cl_kernel kernel, cl_event gate)
{
	const size_t items = FLOATS;
	cl_event last = gate, event;

	for (int i = 0; i < TURNS; i++) {
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 1, &last,
					     &event));
		if (last != gate)
			CHECK(clReleaseEvent(last));
		last = event;
	}
	CHECK(clReleaseEvent(last));
}

static void *work(void *number)
{
	size_t n = (size_t)number;
	const size_t items = FLOATS;
	static float zero;
	float data[FLOATS];
	cl_int rc;
	cl_command_queue queue = clCreateCommandQueue(
		contexts[n % 2], device, n < 2 ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &rc);
	cl_event gate;
	cl_mem buffer;
	cl_kernel kernel;
	int turns = 1;

	CHECK(rc);
	gate = clCreateUserEvent(contexts[n % 2], &rc);
	CHECK(rc);
	buffer = clCreateBuffer(contexts[n % 2], CL_MEM_READ_WRITE, sizeof(data), NULL, &rc);
	CHECK(rc);
	kernel = clCreateKernel(programs[n % 2], "spin", &rc);
	CHECK(rc);
	CHECK(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
	CHECK(clSetKernelArg(kernel, 1, sizeof(turns), &turns));
	CHECK(clEnqueueFillBuffer(queue, buffer, &zero, sizeof(zero), 0, sizeof(data), 0, NULL,
				  NULL));
	CHECK(clFinish(queue));
	if (n < 2)
		for (int i = 0; i < TURNS; i++)
			CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, i == 0,
						     i ? NULL : &gate, NULL));
	else
		wait_in_order(queue, kernel, gate);
	CHECK(clFlush(queue));
	CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
	CHECK(clReleaseEvent(gate));
	CHECK(clFinish(queue));
	CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	CHECK(clReleaseCommandQueue(queue));
	for (int i = 0; i < FLOATS; i++)
		sums[n] += data[i];
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	cl_int rc;

	begin();
	contexts[0] = context;
	programs[0] = program;
	contexts[1] = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
	CHECK(rc);
	context = contexts[1];
	programs[1] = build(source);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		printf("%.6f\n", sums[i]);
	return 0;
}
