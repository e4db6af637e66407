/* A directory for targets that need files: of this process, removed at its end. tools/fuzz-hours
   removes what a crash leaves. */
#ifndef KYMO_FUZZ_SCRATCH_H
#define KYMO_FUZZ_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char scratch_path[512];

static inline void scratch_remove(void)
{
	char command[sizeof(scratch_path) + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", scratch_path);
	if (scratch_path[0] && system(command))
		scratch_path[0] = '\0';
}

/* All of kymo's directories are in it. */
static inline const char *scratch_make(const char *name)
{
	const char *base = getenv("TMPDIR");
	static const char *const variables[] = { "KYMO_DIR", "HOME", "XDG_STATE_HOME",
						 "XDG_RUNTIME_DIR" };

	snprintf(scratch_path, sizeof(scratch_path), "%s/kymo-fuzz-%s-XXXXXX",
		 base && *base ? base : "/tmp", name);
	if (!mkdtemp(scratch_path))
		abort();
	atexit(scratch_remove);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		setenv(variables[i], scratch_path, 1);
	return scratch_path;
}

#endif
