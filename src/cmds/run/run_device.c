#include "cmds/run/run_device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/install_path.h"
#include "base/buf.h"
#include "collect/say.h"

#define CUDA_VARIABLE "CUDA_INJECTION64_PATH"

static const char *const layers[] = {
	"libkymo_opencl.so", /* in the build folder */
	"../lib/kymo/libkymo_opencl.so",
	"../lib/*/kymo/libkymo_opencl.so",
	NULL,
};

static const char *const cuda_libraries[] = {
	"libkymo_cupti.so",
	"../lib/kymo/libkymo_cupti.so",
	"../lib/*/kymo/libkymo_cupti.so",
	"../lib/python3*/site-packages/kymo/libkymo_cupti.so",
	"../lib/python3*/dist-packages/kymo/libkymo_cupti.so",
	"../local/lib/python3*/dist-packages/kymo/libkymo_cupti.so",
	NULL,
};

static void prepare_opencl(struct run_environment *environment)
{
	const char *layers_set = getenv("OPENCL_LAYERS");
	struct buf list = { 0 };
	char layer[PATH_MAX];

	if (!install_path_find(layers, layer, sizeof(layer))) {
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
static void prepare_cuda(struct run_environment *environment)
{
	char library[PATH_MAX];

	if (getenv(CUDA_VARIABLE))
		say("--device does not record CUDA: " CUDA_VARIABLE
		    " is set, so another tool is loaded");
	else if (install_path_find(cuda_libraries, library, sizeof(library)))
		run_environment_set(environment, CUDA_VARIABLE, library);
}

void run_device_prepare(bool on, struct run_environment *environment)
{
	if (!on)
		return;
	run_environment_set(environment, "KYMO_DEVICE", "on");
	prepare_opencl(environment);
	prepare_cuda(environment);
}
