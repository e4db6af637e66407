#include "base/files/install_path.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool first_match(const char *pattern, char *out, size_t out_bytes)
{
	glob_t found;
	char *path;
	bool done = false;

	if (glob(pattern, 0, NULL, &found))
		return false;
	path = found.gl_pathc ? realpath(found.gl_pathv[0], NULL) : NULL;
	if (path && strlen(path) < out_bytes) {
		strcpy(out, path);
		done = true;
	}
	free(path);
	globfree(&found);
	return done;
}

/* The folder with a trailing slash, with its pattern characters quoted. */
static bool quoted_folder(char *out, size_t out_bytes)
{
	char path[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;
	size_t used = 0;

	if (bytes < 0)
		return false;
	path[bytes] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	for (const char *c = path; *c && used + 3 < out_bytes; c++) {
		if (strchr("*?[\\", *c))
			out[used++] = '\\';
		out[used++] = *c;
	}
	out[used] = '\0';
	return true;
}

bool install_path_find(const char *const *patterns, char *out, size_t out_bytes)
{
	char folder[2 * PATH_MAX], pattern[2 * PATH_MAX + 256];

	if (!quoted_folder(folder, sizeof(folder)))
		return false;
	for (; *patterns; patterns++) {
		snprintf(pattern, sizeof(pattern), "%s%s", folder, *patterns);
		if (first_match(pattern, out, out_bytes))
			return true;
	}
	return false;
}
