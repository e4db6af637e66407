#include "cmds/run/run_device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/install_path.h"
#include "base/buf.h"
#include "collect/run/say.h"

static const char *const layers[] = {
	"libkymo_opencl.so", /* the build's folder */
	"../lib/kymo/libkymo_opencl.so",
	"../lib/*/kymo/libkymo_opencl.so",
	NULL,
};

void run_device_prepare(bool on, struct run_environment *environment)
{
	const char *now = getenv("OPENCL_LAYERS");
	struct buf list = { 0 };
	char layer[PATH_MAX];

	if (!on)
		return;
	run_environment_set(environment, "KYMO_DEVICE", "on");
	if (!install_path_find(layers, layer, sizeof(layer))) {
		say("--device: the layer for OpenCL (libkymo_opencl.so) is not beside kymo, so "
		    "that OpenCL is not recorded; build kymo with opencl-headers installed");
		return;
	}
	buf_text(&list, layer);
	if (now && *now)
		buf_print(&list, ":%s", now);
	run_environment_set(environment, "OPENCL_LAYERS", buf_get(&list));
	buf_fini(&list);
}
