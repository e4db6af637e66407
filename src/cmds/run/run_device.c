#include "cmds/run/run_device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/install_path.h"
#include "base/buf.h"
#include "collect/say.h"

static const char *const layers[] = {
	"libkymo_opencl.so", /* in the build folder */
	"../lib/kymo/libkymo_opencl.so",
	"../lib/*/kymo/libkymo_opencl.so",
	NULL,
};

void run_device_prepare(bool on, struct run_environment *environment)
{
	const char *layers_set = getenv("OPENCL_LAYERS");
	struct buf list = { 0 };
	char layer[PATH_MAX];

	if (!on)
		return;
	run_environment_set(environment, "KYMO_DEVICE", "on");
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
