/* Loaded, used and unloaded by plugin_host.c: the region and its name go with it. */
#include <vaccel_prof.h>

static struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("plugin_op");

int plugin_work(int leave_open)
{
	int rc = vaccel_prof_region_start(&region);

	if (!leave_open)
		rc += vaccel_prof_region_stop(&region);
	return rc;
}
