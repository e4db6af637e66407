#include "base/files/install_path.h"

#include <dlfcn.h>
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

static const char *const library_folders[] = {
	"", /* the build folder */
	"../lib/kymo/",
	"../lib64/kymo/",
	"../lib/*/kymo/",
	"../lib/python3*/site-packages/kymo/", /* of a wheel */
	"../lib/python3*/dist-packages/kymo/",
	"../local/lib/python3*/dist-packages/kymo/",
};
#define LIBRARY_FOLDERS (sizeof(library_folders) / sizeof(library_folders[0]))

bool install_path_library(const char *library, char *out, size_t out_bytes)
{
	char texts[LIBRARY_FOLDERS][128];
	const char *places[LIBRARY_FOLDERS + 1] = { NULL };

	for (size_t i = 0; i < LIBRARY_FOLDERS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s%s", library_folders[i], library);
		places[i] = texts[i];
	}
	return install_path_find(places, out, out_bytes);
}

void *install_path_open(const char *library, int flags)
{
	void *handle = dlopen(library, flags);
	char path[PATH_MAX];

	if (!handle && install_path_library(library, path, sizeof(path)))
		handle = dlopen(path, flags);
	return handle;
}
