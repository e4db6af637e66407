/* Commands that few programs use: images, shared virtual memory, native kernels, tasks, migrations,
   barriers with lists, sub-buffers. Prints what came out of each; with an argument also what OpenCL
   itself says of each command, as COMMAND QUEUED SUBMIT START END. What the device does not support
   is said. */
#include "cl.h"

#define BYTES 4096
#define WIDTH 16
#define HEIGHT 8
#define PIXELS (WIDTH * HEIGHT * 4)
#define COMMANDS 64

static cl_command_queue queue;
static struct {
	const char *name;
	cl_event event;
} commands[COMMANDS];
static int count;

/* Where the event of the next command goes. */
static cl_event *as(const char *name)
{
	commands[count].name = name;
	return &commands[count++].event;
}

static void say_sum(const char *what, const void *data, size_t bytes)
{
	unsigned sum = 0;

	for (size_t i = 0; i < bytes; i++)
		sum = sum * 31 + ((const unsigned char *)data)[i];
	printf("%s: %u\n", what, sum);
}

static cl_bitfield asked(cl_device_info what, size_t bytes)
{
	cl_bitfield answer = 0;

	return clGetDeviceInfo(device, what, bytes, &answer, NULL) ? 0 : answer;
}

/* ---- images --------------------------------------------------------------------------------- */

static cl_mem image_of(void)
{
	const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = WIDTH,
				     .image_height = HEIGHT };
	cl_int rc;
	cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &rc);

	CHECK(rc);
	return image;
}

static void images(void)
{
	const size_t zero[3] = { 0, 0, 0 }, all[3] = { WIDTH, HEIGHT, 1 }, some[3] = { 4, 4, 1 };
	const float colour[4] = { 1, 0.5f, 0.25f, 0 };
	static unsigned char data[PIXELS];
	size_t row = 0;
	cl_mem one, two, buffer;
	cl_int rc;
	unsigned char *at;

	if (!asked(CL_DEVICE_IMAGE_SUPPORT, sizeof(cl_bool))) {
		puts("images: not supported");
		return;
	}
	for (int i = 0; i < PIXELS; i++)
		data[i] = (unsigned char)i;
	one = image_of();
	two = image_of();
	buffer = buffer_of(PIXELS);
	CHECK(clEnqueueWriteImage(queue, one, CL_FALSE, zero, all, 0, 0, data, 0, NULL,
				  as("clEnqueueWriteImage")));
	CHECK(clEnqueueFillImage(queue, one, colour, zero, some, 0, NULL,
				 as("clEnqueueFillImage")));
	CHECK(clEnqueueCopyImage(queue, one, two, zero, zero, all, 0, NULL,
				 as("clEnqueueCopyImage")));
	CHECK(clEnqueueCopyImageToBuffer(queue, two, buffer, zero, all, 0, 0, NULL,
					 as("clEnqueueCopyImageToBuffer")));
	CHECK(clEnqueueCopyBufferToImage(queue, buffer, one, 0, zero, all, 0, NULL,
					 as("clEnqueueCopyBufferToImage")));
	at = clEnqueueMapImage(queue, one, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, zero, all, &row,
			       NULL, 0, NULL, as("clEnqueueMapImage"), &rc);
	CHECK(rc);
	at[row + 4] = 200;
	CHECK(clEnqueueUnmapMemObject(queue, one, at, 0, NULL, as("clEnqueueUnmapMemObject")));
	CHECK(clEnqueueReadImage(queue, one, CL_TRUE, zero, all, 0, 0, data, 0, NULL,
				 as("clEnqueueReadImage")));
	say_sum("images", data, sizeof(data));
	CHECK(clReleaseMemObject(one));
	CHECK(clReleaseMemObject(two));
	CHECK(clReleaseMemObject(buffer));
}

/* ---- shared virtual memory ---- */

static void shared_memory(void)
{
	const size_t items = BYTES / sizeof(float), sizes[1] = { 0 };
	const float one = 1;
	static float data[BYTES / sizeof(float)];
	cl_kernel kernel;
	void *from, *to, *given[1];
	cl_int rc;

	if (!(asked(CL_DEVICE_SVM_CAPABILITIES, sizeof(cl_device_svm_capabilities)) &
	      CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)) {
		puts("svm: not supported");
		return;
	}
	from = given[0] = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	to = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	CHECK(from && to ? CL_SUCCESS : CL_OUT_OF_RESOURCES);
	CHECK(clEnqueueSVMMemFill(queue, from, &one, sizeof(one), BYTES, 0, NULL,
				  as("clEnqueueSVMMemFill")));
	CHECK(clEnqueueSVMMemcpy(queue, CL_TRUE, to, from, BYTES, 0, NULL,
				 as("clEnqueueSVMMemcpy")));
	CHECK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, to, 256, 0, NULL,
			      as("clEnqueueSVMMap")));
	((float *)to)[3] = 21;
	CHECK(clEnqueueSVMUnmap(queue, to, 0, NULL, as("clEnqueueSVMUnmap")));
	CHECK(clEnqueueSVMMigrateMem(queue, 1, (const void **)given, sizes, 0, 0, NULL,
				     as("clEnqueueSVMMigrateMem")));
	kernel = clCreateKernel(program, "twice", &rc);
	CHECK(rc);
	CHECK(clSetKernelArgSVMPointer(kernel, 0, to));
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL,
				     as("clEnqueueNDRangeKernel")));
	CHECK(clEnqueueSVMMemcpy(queue, CL_TRUE, data, to, BYTES, 0, NULL,
				 as("clEnqueueSVMMemcpy")));
	say_sum("svm", data, sizeof(data));
	CHECK(clEnqueueSVMFree(queue, 1, given, NULL, NULL, 0, NULL, as("clEnqueueSVMFree")));
	CHECK(clFinish(queue));
	clSVMFree(context, to);
	CHECK(clReleaseKernel(kernel));
}

/* ---- the rest ---- */

struct native {
	float *data;
	size_t floats;
};

static void CL_CALLBACK thrice(void *args)
{
	struct native *native = args;

	for (size_t i = 0; i < native->floats; i++)
		native->data[i] *= 3;
}

static void native_kernel(cl_mem buffer)
{
	struct native native = { NULL, BYTES / sizeof(float) };
	const void *places[1] = { &native.data };

	if (!(asked(CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(cl_device_exec_capabilities)) &
	      CL_EXEC_NATIVE_KERNEL)) {
		puts("native kernels: not supported");
		return;
	}
	CHECK(clEnqueueNativeKernel(queue, thrice, &native, sizeof(native), 1, &buffer, places, 0,
				    NULL, as("clEnqueueNativeKernel")));
}

static void buffers(void)
{
	const cl_buffer_region region = { 1024, 2048 };
	const float one = 1;
	static unsigned char data[BYTES];
	cl_mem whole = buffer_of(BYTES), part;
	cl_kernel kernel = kernel_of("twice", whole, 0);
	cl_event *filled;
	cl_int rc;

	part = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region,
				 &rc);
	CHECK(rc);
	filled = as("clEnqueueFillBuffer");
	CHECK(clEnqueueFillBuffer(queue, whole, &one, sizeof(one), 0, BYTES, 0, NULL, filled));
	CHECK(clEnqueueBarrierWithWaitList(queue, 1, filled, as("clEnqueueBarrierWithWaitList")));
	CHECK(clEnqueueMarkerWithWaitList(queue, 1, filled, as("clEnqueueMarkerWithWaitList")));
	CHECK(clEnqueueTask(queue, kernel, 0, NULL, as("clEnqueueTask")));
	native_kernel(whole);
	CHECK(clEnqueueFillBuffer(queue, part, &one, sizeof(one), 0, 512, 1, filled,
				  as("clEnqueueFillBuffer")));
	CHECK(clEnqueueCopyBuffer(queue, part, whole, 0, 0, 128, 0, NULL,
				  as("clEnqueueCopyBuffer")));
	CHECK(clEnqueueMigrateMemObjects(queue, 1, &part, 0, 0, NULL,
					 as("clEnqueueMigrateMemObjects")));
	CHECK(clEnqueueReadBuffer(queue, part, CL_TRUE, 0, 2048, data, 0, NULL,
				  as("clEnqueueReadBuffer")));
	say_sum("part", data, 2048);
	CHECK(clEnqueueReadBuffer(queue, whole, CL_TRUE, 0, BYTES, data, 0, NULL,
				  as("clEnqueueReadBuffer")));
	say_sum("whole", data, BYTES);
	CHECK(clReleaseMemObject(part));
	CHECK(clReleaseMemObject(whole));
	CHECK(clReleaseKernel(kernel));
}

int main(int argc, char **argv)
{
	(void)argv;
	begin();
	queue = queue_with(CL_QUEUE_PROFILING_ENABLE);
	images();
	shared_memory();
	buffers();
	CHECK(clFinish(queue));
	for (int i = 0; i < count; i++) {
		if (argc > 1)
			printf("%s %llu %llu %llu %llu\n", commands[i].name,
			       event_time(commands[i].event, CL_PROFILING_COMMAND_QUEUED),
			       event_time(commands[i].event, CL_PROFILING_COMMAND_SUBMIT),
			       event_time(commands[i].event, CL_PROFILING_COMMAND_START),
			       event_time(commands[i].event, CL_PROFILING_COMMAND_END));
		CHECK(clReleaseEvent(commands[i].event));
	}
	return 0;
}
