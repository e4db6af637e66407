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

static bool own_code_ends_with(const char *text, size_t bytes, const char *end)
{
	return bytes >= strlen(end) && !memcmp(text + bytes - strlen(end), end, strlen(end));
}

bool own_code_is_worker(const char *function, size_t function_bytes, const char *file,
			size_t file_bytes)
{
	return own_code_ends_with(function, function_bytes, "_bootstrap") &&
	       own_code_ends_with(file, file_bytes, "/multiprocessing/process.py");
}

bool own_code_is_weak(const char *file, size_t file_bytes)
{
	const char *name = file_bytes ? memrchr(file, '/', file_bytes) : NULL;
	size_t before = name ? (size_t)(name - file) : 0;

	if (!file_bytes || file[0] == '<')
		return true;
	return before >= 4 && !memcmp(name - 4, "/bin", 4) &&
	       !memchr(name, '.', file_bytes - before);
}

static bool is_of_system(const char *path, size_t bytes)
{
	static const char *const prefixes[] = { "/usr/",  "/lib/",  "/lib32/", "/lib64/",
						"/bin/",  "/sbin/", "/opt/",   "/nix/store/",
						"/snap/", "[" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (bytes >= strlen(prefixes[i]) && !memcmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* The interpreter, its library, and kymo's libraries, wherever they are installed. */
static bool is_of_python(const char *path, size_t bytes)
{
	static const char *const names[] = { "python", "libpython", "libkymo" };
	const char *slash = memrchr(path, '/', bytes);
	size_t skip = slash ? (size_t)(slash + 1 - path) : 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (bytes - skip >= strlen(names[i]) &&
		    !memcmp(path + skip, names[i], strlen(names[i])))
			return true;
	return false;
}

bool own_code_is_native(const char *module, size_t module_bytes, const char *file,
			size_t file_bytes, const char *cwd)
{
	size_t cwd_bytes = strlen(cwd);

	if (!module_bytes)
		return false;
	if (own_code_is_named(module, module_bytes) || own_code_is_named(file, file_bytes))
		return true;
	if (file_bytes && is_of_system(file, file_bytes))
		return false;
	if (is_of_python(module, module_bytes))
		return false;
	if (cwd_bytes > 1 && is_below(module, module_bytes, cwd, cwd_bytes))
		return !own_code_is_foreign(module + cwd_bytes, module_bytes - cwd_bytes);
	return !is_of_system(module, module_bytes) && !own_code_is_foreign(module, module_bytes);
}

bool own_code_is_linked(const char *function, size_t bytes)
{
	return (bytes == 6 && !memcmp(function, "_start", 6)) ||
	       (bytes == 5 && !memcmp(function, "_init", 5)) ||
	       (bytes > 2 && !memcmp(function, "__", 2));
}

bool own_code_is_recorder(const char *function, size_t bytes)
{
	static const char *const prefixes[] = { "kymo__", "kymo_zone_", "kymo_ticks" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (bytes >= strlen(prefixes[i]) &&
		    !memcmp(function, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}
