#include "cmds/run/run_doors.h"

#include <limits.h>
#include <stdlib.h>

#include "base/files/install_path.h"
#include "views/status/doors.h"

void run_doors_prepare(struct run_environment *environment)
{
	char library[PATH_MAX];

	for (size_t i = 0; i < doors_loaded_count; i++) {
		const struct door *door = &doors_loaded[i];

		if (door->by_run && !getenv(door->variable) &&
		    install_path_library(door->library, library, sizeof(library)))
			run_environment_set(environment, door->variable, library);
	}
}
