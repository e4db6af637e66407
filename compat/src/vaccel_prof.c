/* vAccel's names. */
#include <vaccel_prof.h>

bool vaccel_prof_enabled(void)
{
	return false;
}
