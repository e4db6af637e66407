#include "collect/backtrace/own_code.h"

#include <stdlib.h>
#include <string.h>

/* Whether the path is `directory` or below it. */
static bool is_below(const char *path, size_t bytes, const char *directory, size_t directory_bytes)
{
	while (directory_bytes > 1 && directory[directory_bytes - 1] == '/')
		directory_bytes--;
	return directory_bytes && bytes > directory_bytes &&
	       !memcmp(path, directory, directory_bytes) &&
	       (path[directory_bytes] == '/' || directory[directory_bytes - 1] == '/');
}

static bool own_code_is_named(const char *path, size_t bytes)
{
	const char *list = getenv("KYMO_OWN_CODE");

	for (size_t part; list && *list; list += part + (list[part] == ':')) {
		part = strcspn(list, ":");
		if (is_below(path, bytes, list, part))
			return true;
	}
	return false;
}

/* "/lib/python3.11/…" of an interpreter, a virtual environment or a system. */
static bool is_in_library(const char *path, size_t bytes)
{
	static const char library[] = "/lib/python3", wide[] = "/lib64/python3";

	return memmem(path, bytes, library, sizeof(library) - 1) ||
	       memmem(path, bytes, wide, sizeof(wide) - 1);
}

static bool own_code_is_foreign(const char *path, size_t bytes)
{
	static const char *const parts[] = { "/site-packages/", "/dist-packages/", "/kymo/_" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (memmem(path, bytes, parts[i], strlen(parts[i])))
			return true;
	return is_in_library(path, bytes) || (bytes > 7 && !memcmp(path, "<frozen", 7));
}

bool own_code_is(const char *file, size_t file_bytes, const char *cwd)
{
	size_t cwd_bytes = strlen(cwd);

	if (!file_bytes)
		return false;
	if (own_code_is_named(file, file_bytes))
		return true;
	if (is_below(file, file_bytes, cwd, cwd_bytes) && cwd_bytes > 1)
		return !own_code_is_foreign(file + cwd_bytes, file_bytes - cwd_bytes);
	return !own_code_is_foreign(file, file_bytes);
}
