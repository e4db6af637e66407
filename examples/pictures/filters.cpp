/*
 * Filters for batches of pictures, on an OpenCL device: the plugin of train.py, which calls it
 * through ctypes. It is marked as such code is found: vAccel's regions around what it offers,
 * Tracy's zones around the stages inside. It has never heard of kymo. Without OpenCL
 * (FILTERS_NO_OPENCL), or where there is no device, the filters run on the processor.
 *
 *	c++ -shared -fPIC -DTRACY_ENABLE filters.cpp -o libfilters.so \
 *		$(pkg-config --cflags --libs kymo-compat) -lOpenCL
 */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tracy/Tracy.hpp>
#include <vaccel_prof.h>

#ifndef FILTERS_NO_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

namespace
{

vaccel_prof_region denoise_region = VACCEL_PROF_REGION_INIT("denoise");
vaccel_prof_region edges_region = VACCEL_PROF_REGION_INIT("edges");

struct Region {
	vaccel_prof_region &region;

	explicit Region(vaccel_prof_region &which) : region(which)
	{
		vaccel_prof_region_start(&region);
	}
	~Region()
	{
		vaccel_prof_region_stop(&region);
	}
};

struct Batch {
	const float *in;
	float *out;
	int pictures, side;

	size_t pixels() const
	{
		return (size_t)pictures * side * side;
	}
	size_t bytes() const
	{
		return pixels() * sizeof(float);
	}
};

#ifndef FILTERS_NO_OPENCL

const char source[] = R"(
/* A pixel of the same picture, or the nearest one where it would be outside. */
float at(__global const float *in, int side, int picture, int y, int x)
{
	return in[(picture * side + clamp(y, 0, side - 1)) * side + clamp(x, 0, side - 1)];
}

__kernel void blur_rows(__global const float *in, __global float *out)
{
	int x = get_global_id(0), y = get_global_id(1), p = get_global_id(2);
	int side = get_global_size(0);

	out[(p * side + y) * side + x] =
		(at(in, side, p, y, x - 1) + 2 * at(in, side, p, y, x) +
		 at(in, side, p, y, x + 1)) / 4;
}

__kernel void blur_columns(__global const float *in, __global float *out)
{
	int x = get_global_id(0), y = get_global_id(1), p = get_global_id(2);
	int side = get_global_size(0);

	out[(p * side + y) * side + x] =
		(at(in, side, p, y - 1, x) + 2 * at(in, side, p, y, x) +
		 at(in, side, p, y + 1, x)) / 4;
}

__kernel void sobel(__global const float *in, __global float *out)
{
	int x = get_global_id(0), y = get_global_id(1), p = get_global_id(2);
	int side = get_global_size(0);
	float right = 0, down = 0;

	for (int i = -1; i <= 1; i++) {
		float weight = i ? 1 : 2;

		right += weight * (at(in, side, p, y + i, x + 1) - at(in, side, p, y + i, x - 1));
		down += weight * (at(in, side, p, y + 1, x + i) - at(in, side, p, y - 1, x + i));
	}
	out[(p * side + y) * side + x] = sqrt(right * right + down * down);
}
)";

/* The first device that is found. Its objects live as long as the process. */
class Device
{
	cl_context context = nullptr;
	cl_command_queue queue = nullptr;
	cl_program program = nullptr;
	cl_mem buffers[2] = {};
	size_t room = 0;

      public:
	std::string name;

	bool open()
	{
		ZoneScopedN("open device");
		cl_platform_id platform;
		cl_device_id device;
		const char *text = source;
		char said[256] = "";
		cl_int rc;

		if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
		    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
			return false;
		context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &rc);
		queue = rc ? nullptr : clCreateCommandQueue(context, device, 0, &rc);
		program = rc ? nullptr : clCreateProgramWithSource(context, 1, &text, nullptr, &rc);
		if (rc || clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS)
			return false;
		clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(said) - 1, said, nullptr);
		name = said;
		return true;
	}

	bool upload(const Batch &batch)
	{
		ZoneScopedN("upload");
		cl_int rc = CL_SUCCESS;

		for (cl_mem &buffer : buffers) {
			if (batch.bytes() <= room)
				break;
			if (buffer)
				clReleaseMemObject(buffer);
			buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, batch.bytes(), nullptr,
						&rc);
			if (rc)
				return false;
		}
		room = std::max(room, batch.bytes());
		return clEnqueueWriteBuffer(queue, buffers[0], CL_FALSE, 0, batch.bytes(), batch.in,
					    0, nullptr, nullptr) == CL_SUCCESS;
	}

	/* What the kernel makes is what the next one takes. */
	bool compute(const Batch &batch, const char *which)
	{
		ZoneScopedN("compute");
		ZoneText(which, strlen(which));
		const size_t sizes[3] = { (size_t)batch.side, (size_t)batch.side,
					  (size_t)batch.pictures };
		cl_int rc;
		cl_kernel kernel = clCreateKernel(program, which, &rc);

		if (rc)
			return false;
		clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffers[0]);
		clSetKernelArg(kernel, 1, sizeof(cl_mem), &buffers[1]);
		rc = clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, sizes, nullptr, 0, nullptr,
					    nullptr);
		clReleaseKernel(kernel);
		std::swap(buffers[0], buffers[1]);
		return rc == CL_SUCCESS;
	}

	bool download(const Batch &batch)
	{
		ZoneScopedN("download");
		return clEnqueueReadBuffer(queue, buffers[0], CL_TRUE, 0, batch.bytes(), batch.out,
					   0, nullptr, nullptr) == CL_SUCCESS;
	}
};

#else

struct Device {
	std::string name;

	bool open()
	{
		return false;
	}
	bool upload(const Batch &)
	{
		return false;
	}
	bool compute(const Batch &, const char *)
	{
		return false;
	}
	bool download(const Batch &)
	{
		return false;
	}
};

#endif

/* Opened when it is first asked for; nullptr: there is none. */
Device *the_device()
{
	static Device device;
	static const bool is_open = device.open();

	return is_open ? &device : nullptr;
}

/* ---- the same on the processor ---- */

float at(const Batch &batch, const float *in, int picture, int y, int x)
{
	const int last = batch.side - 1;

	return in[((size_t)picture * batch.side + std::min(std::max(y, 0), last)) * batch.side +
		  std::min(std::max(x, 0), last)];
}

/* out[pixel] = pixel_of(picture, y, x), for every pixel. */
template <typename Filter> void for_each_pixel(const Batch &batch, float *out, Filter pixel_of)
{
	ZoneScopedN("compute");

	for (int picture = 0; picture < batch.pictures; picture++)
		for (int y = 0; y < batch.side; y++)
			for (int x = 0; x < batch.side; x++)
				*out++ = pixel_of(picture, y, x);
}

void denoise_here(const Batch &batch)
{
	std::vector<float> rows(batch.pixels());

	for_each_pixel(batch, rows.data(), [&](int p, int y, int x) {
		return (at(batch, batch.in, p, y, x - 1) + 2 * at(batch, batch.in, p, y, x) +
			at(batch, batch.in, p, y, x + 1)) /
		       4;
	});
	for_each_pixel(batch, batch.out, [&](int p, int y, int x) {
		return (at(batch, rows.data(), p, y - 1, x) + 2 * at(batch, rows.data(), p, y, x) +
			at(batch, rows.data(), p, y + 1, x)) /
		       4;
	});
}

void edges_here(const Batch &batch)
{
	for_each_pixel(batch, batch.out, [&](int p, int y, int x) {
		float right = 0, down = 0;

		for (int i = -1; i <= 1; i++) {
			const float weight = i ? 1 : 2;

			right += weight * (at(batch, batch.in, p, y + i, x + 1) -
					   at(batch, batch.in, p, y + i, x - 1));
			down += weight * (at(batch, batch.in, p, y + 1, x + i) -
					  at(batch, batch.in, p, y - 1, x + i));
		}
		return std::sqrt(right * right + down * down);
	});
}
} // namespace

/* ---- what the plugin offers ---- */

/* Where the filters run. */
extern "C" const char *device_name(void)
{
	return the_device() ? the_device()->name.c_str() : "the processor";
}

/* in, out: pictures x side x side numbers each, apart from each other. */
extern "C" void denoise(const float *in, float *out, int pictures, int side)
{
	Region region(denoise_region);
	const Batch batch = { in, out, pictures, side };
	Device *device = the_device();

	if (!device || !device->upload(batch) || !device->compute(batch, "blur_rows") ||
	    !device->compute(batch, "blur_columns") || !device->download(batch))
		denoise_here(batch);
}

extern "C" void edges(const float *in, float *out, int pictures, int side)
{
	Region region(edges_region);
	const Batch batch = { in, out, pictures, side };
	Device *device = the_device();

	if (!device || !device->upload(batch) || !device->compute(batch, "sobel") ||
	    !device->download(batch))
		edges_here(batch);
}
