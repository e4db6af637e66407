#include <vaccel_prof.h>

static struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("plugin work");

int main()
{
	for (int i = 0; i < 3; i++) {
		vaccel_prof_region_start(&region);
		vaccel_prof_region_stop(&region);
	}
	return vaccel_prof_region_print(&region);
}
