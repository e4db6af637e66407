/* What recording adds to a kernel that does nothing, enqueued and waited for on PoCL: slices with
   and without, in turn. Run with the layer loaded; without, the program reports it. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <kymo/device.h>

#include "bench.h"

#define SLICES 200
#define EACH 40

static cl_command_queue queue;
static cl_kernel kernel;

static void check(cl_int rc)
{
	if (rc == CL_SUCCESS)
		return;
	fprintf(stderr, "OpenCL gave %d\n", rc);
	exit(1);
}

static void set_up(void)
{
	const char *source = "__kernel void nothing(__global int *a) { if (a == 0) a[0] = 1; }";
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_mem buffer;
	cl_int rc;

	check(clGetPlatformIDs(1, &platform, NULL));
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
	check(rc);
	queue = clCreateCommandQueue(context, device, 0, &rc);
	check(rc);
	program = clCreateProgramWithSource(context, 1, &source, NULL, &rc);
	check(rc);
	check(clBuildProgram(program, 1, &device, "", NULL, NULL));
	kernel = clCreateKernel(program, "nothing", &rc);
	check(rc);
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &rc);
	check(rc);
	check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct slice {
	double wall, enqueue, cpu; /* ns each */
};

static struct slice slice(void)
{
	const size_t items = 1;
	struct slice out = { 0 };
	double cpu = cpu_ns();
	uint64_t begin = kymo_ticks(), inside = 0;

	for (int i = 0; i < EACH; i++) {
		uint64_t before = kymo_ticks();

		check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
		inside += kymo_ticks() - before;
		check(clFinish(queue));
	}
	out.cpu = (cpu_ns() - cpu) / EACH;
	out.wall = (double)kymo_ticks_ns(kymo_ticks() - begin) / EACH;
	out.enqueue = (double)kymo_ticks_ns(inside) / EACH;
	return out;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of the slices that were disturbed least, since what else the machine does only ever adds. */
static double low(double *values)
{
	qsort(values, SLICES, sizeof(*values), by_value);
	return values[SLICES / 10];
}

int main(void)
{
	static double wall[2][SLICES], cpu[2][SLICES], enqueue[2][SLICES];
	double least[2];

	if (kymo_device_enable(NULL))
		bench_die("kymo_device_enable");
	set_up();
	slice();
	for (int i = 0; i < 2 * SLICES; i++) {
		struct slice one;

		if (i % 2)
			kymo_device_enable(NULL);
		else
			kymo_device_disable();
		one = slice();
		wall[i % 2][i / 2] = one.wall;
		cpu[i % 2][i / 2] = one.cpu;
		enqueue[i % 2][i / 2] = one.enqueue;
	}
	least[0] = low(wall[0]);
	least[1] = low(wall[1]);
	bench_emit("device.pair", "x", least[1] / least[0]);
	bench_emit("device.pair.ns", "ns", least[0]);
	bench_emit("device.pair.cpu_ns", "ns", low(cpu[1]) - low(cpu[0]));
	bench_emit("device.enqueue.ns", "ns", low(enqueue[1]) - low(enqueue[0]));
	return 0;
}
