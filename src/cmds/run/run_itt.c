#include "cmds/run/run_itt.h"

#include <limits.h>
#include <stdlib.h>

#include "views/status/doctor.h"

void run_itt_prepare(struct run_environment *environment)
{
	char library[PATH_MAX];

	if (!getenv(DOCTOR_ITT_VARIABLE) && doctor_itt_library(library, sizeof(library)))
		run_environment_set(environment, DOCTOR_ITT_VARIABLE, library);
}
