#include "cmds/run/run_memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/install_path.h"
#include "cmds/cmds.h"

int run_memory_word(struct run_memory *memory, const char *word)
{
	memory->ready = true;
	memory->exact = word && !strcmp(word, "exact");
	memory->on = !word || memory->exact || !strcmp(word, "sampled");
	if (!memory->on && strcmp(word, "off") != 0)
		return cmds_wrong("run",
				  "--memory takes sampled (the default), exact or off (until kymo "
				  "config turns it on), not \"%s\"",
				  word);
	return -1;
}

/* In the build folder, below an installation prefix, in an environment with the wheel. */
static const char *const places[] = {
	"libkymo_memory.so.0",
	"../lib/libkymo_memory.so.0",
	"../lib/*/libkymo_memory.so.0",
	"../lib/python3*/site-packages/kymo/libkymo_memory.so*",
	"../lib/python3*/dist-packages/kymo/libkymo_memory.so*",
	"../local/lib/python3*/dist-packages/kymo/libkymo_memory.so*",
	NULL,
};

/* Placed before the program's own preloads, so that calls reach its allocator through ours. */
static int preload(struct run_environment *environment)
{
	struct kymo_error err = { 0 };
	char library[PATH_MAX];

	if (!install_path_find(places, library, sizeof(library)) || strpbrk(library, ": ")) {
		error_set(&err, ENOENT,
			  "cannot preload libkymo_memory.so: it is not installed with kymo, or its "
			  "path contains a colon or a space, which LD_PRELOAD does not allow; "
			  "install kymo again or elsewhere");
		return cmds_fail("run", &err);
	}
	run_environment_preload(environment, library);
	return -1;
}

int run_memory_prepare(const struct run_memory *memory, bool injected,
		       struct run_environment *environment)
{
	struct kymo_error err = { 0 };

	if (!memory->ready)
		return -1;
	if (!injected)
		run_environment_inject(environment, &err); /* provides the lines of Python code */
	if (memory->on)
		run_environment_set(environment, "KYMO_MEMORY", "on");
	if (memory->exact)
		run_environment_set(environment, "KYMO_MEMORY_EXACT", "on");
	return preload(environment);
}
