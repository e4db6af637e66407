#include "cmds/run/run_device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/install_path.h"
#include "base/buf.h"
#include "collect/say.h"
#include "views/status/doors.h"

#define CUDA_VARIABLE "CUDA_INJECTION64_PATH"

static void record_opencl(struct run_environment *environment)
{
	const char *layers_set = getenv("OPENCL_LAYERS");
	struct buf list = { 0 };
	char layer[PATH_MAX];

	if (!install_path_library("libkymo_opencl.so", layer, sizeof(layer))) {
		say("--device cannot record OpenCL: libkymo_opencl.so is not installed with kymo; "
		    "build kymo with opencl-headers installed");
		return;
	}
	buf_text(&list, layer);
	if (layers_set && *layers_set)
		buf_print(&list, ":%s", layers_set);
	run_environment_set(environment, "OPENCL_LAYERS", buf_get(&list));
	buf_fini(&list);
}

/* The driver loads one library: another tool's stays. */
static void record_cuda(struct run_environment *environment)
{
	char library[PATH_MAX];

	if (getenv(CUDA_VARIABLE))
		say("--device does not record CUDA: " CUDA_VARIABLE
		    " is set, so another tool is loaded");
	else if (install_path_library("libkymo_cupti.so", library, sizeof(library)))
		run_environment_set(environment, CUDA_VARIABLE, library);
}

/* Preloaded only where the runtime is, because each process of the program loads it. */
static void record_nrt(struct run_environment *environment)
{
	char library[PATH_MAX];

	if (doors_has_nrt() && install_path_library("libkymo_nrt.so", library, sizeof(library)) &&
	    !strpbrk(library, ": "))
		run_environment_preload(environment, library);
}

void run_device_prepare(bool on, struct run_environment *environment)
{
	if (!on)
		return;
	run_environment_set(environment, "KYMO_DEVICE", "on");
	record_opencl(environment);
	record_nrt(environment);
	record_cuda(environment);
}
