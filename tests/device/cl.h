/* What the OpenCL programs of the tests share: a device, a program, and an end with a sentence
   where something fails. */
#ifndef KYMO_TESTS_CL_H
#define KYMO_TESTS_CL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(expression) check((expression), #expression, __LINE__)
static inline void check(cl_int rc, const char *what, int line)
{
	if (rc == CL_SUCCESS)
		return;
	fprintf(stderr, "line %d: %s gave %d\n", line, what, rc);
	exit(3);
}

static cl_device_id device;
static cl_context context;
static cl_program program;

static const char source[] =
	"__kernel void twice(__global float *a) { size_t i = get_global_id(0); a[i] = 2 * a[i]; }\n"
	"__kernel void spin(__global float *a, int turns) { size_t i = get_global_id(0); float x = "
	"a[i];\n"
	"  for (int k = 0; k < turns; k++) x = x * 1.0001f + 0.5f; a[i] = x; }\n";

static inline cl_program build(const char *text)
{
	cl_int rc;
	cl_program made = clCreateProgramWithSource(context, 1, &text, NULL, &rc);

	CHECK(rc);
	CHECK(clBuildProgram(made, 1, &device, "", NULL, NULL));
	return made;
}

static inline void begin(void)
{
	cl_platform_id platform;
	cl_int rc;

	CHECK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
	CHECK(rc);
	program = build(source);
}

static inline cl_command_queue queue_with(cl_command_queue_properties properties)
{
	cl_int rc;
	cl_command_queue queue = clCreateCommandQueue(context, device, properties, &rc);

	CHECK(rc);
	return queue;
}

static inline cl_mem buffer_of(size_t bytes)
{
	cl_int rc;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &rc);

	CHECK(rc);
	return buffer;
}

static inline cl_kernel kernel_of(const char *name, cl_mem buffer, int turns)
{
	cl_int rc;
	cl_kernel kernel = clCreateKernel(program, name, &rc);

	CHECK(rc);
	CHECK(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
	if (turns)
		CHECK(clSetKernelArg(kernel, 1, sizeof(turns), &turns));
	return kernel;
}

static inline unsigned long long event_time(cl_event event, cl_profiling_info what)
{
	cl_ulong ns = 0;

	CHECK(clGetEventProfilingInfo(event, what, sizeof(ns), &ns, NULL));
	return ns;
}

#endif
