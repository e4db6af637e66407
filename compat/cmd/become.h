/* Replaces a command of another tool with kymo, from the same folder or PATH. */
#ifndef KYMO_COMPAT_BECOME_H
#define KYMO_COMPAT_BECOME_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns only if kymo cannot be started, after an error message. */
static inline void become_kymo(const char *self, char **argv)
{
	char path[PATH_MAX + 8];
	ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX);

	if (bytes > 0) {
		path[bytes] = '\0';
		strcpy(strrchr(path, '/') + 1, "kymo");
		execv(path, argv);
	}
	execvp("kymo", argv);
	fprintf(stderr, "%s: cannot start kymo from its own folder or PATH: %s\n", self,
		strerror(errno));
}

#endif
