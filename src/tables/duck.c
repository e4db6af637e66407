#include "tables/duck.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/install_path.h"

#define LIBRARY "libduckdb.so"
#define OLDEST_MAJOR 1
#define OLDEST_MINOR 5

struct duck duck;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;

/* NULL if there is no such file, or if it cannot be loaded; then the reason is in *why. */
static void *open_beside_program(char *why, size_t why_bytes)
{
	char path[PATH_MAX];
	void *handle;

	if (!install_path_library(LIBRARY, path, sizeof(path)))
		return NULL;
	handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!handle)
		snprintf(why, why_bytes, "%s", dlerror());
	return handle;
}

static int duck_open_library(void **out, struct kymo_error *err)
{
	/* Not that of a caller with fewer rights, if kymo was given capabilities. */
	const char *asked = secure_getenv("KYMO_DUCKDB");
	char why[512] = "";

	if (asked && *asked) {
		*out = dlopen(asked, RTLD_LAZY | RTLD_LOCAL);
		if (!*out)
			return error_set(err, ENOENT,
					 "cannot load DuckDB from KYMO_DUCKDB: %s; correct or "
					 "unset KYMO_DUCKDB",
					 dlerror());
		return 0;
	}
	*out = open_beside_program(why, sizeof(why));
	if (!*out && !*why)
		*out = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	if (*out)
		return 0;
	if (*why)
		return error_set(err, ENOENT, "cannot load DuckDB, which SQL needs: %s", why);
	return error_set(err, ENOENT,
			 "cannot find " LIBRARY ", which SQL needs, next to the program, in "
			 "../lib/kymo or in the path of the loader; run `make`, install DuckDB "
			 "%d.%d or later, or set KYMO_DUCKDB to the file",
			 OLDEST_MAJOR, OLDEST_MINOR);
}

/* For example "v1.5.6". A development build ("v0.0.1") is accepted. */
static bool too_old(const char *version)
{
	int major = 0, minor = 0;

	if (sscanf(version, "v%d.%d", &major, &minor) != 2 || !major)
		return false;
	return major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR);
}

static int duck_resolve(void *handle, struct duck *out, struct kymo_error *err)
{
	const char *missing = NULL;
	const char *version = "of an unknown version";

#define X(name) \
	*(void **)&out->name = dlsym(handle, "duckdb_" #name); \
	if (!out->name && !missing) \
		missing = "duckdb_" #name;
	DUCK_FUNCTIONS(X)
#undef X
	if (out->library_version)
		version = out->library_version();
	if (missing || too_old(version))
		return error_set(
			err, ENOTSUP,
			"cannot use DuckDB %s%s%s: SQL needs %d.%d or later; set KYMO_DUCKDB to "
			"a newer " LIBRARY,
			version, missing ? ", which lacks " : "", missing ? missing : "",
			OLDEST_MAJOR, OLDEST_MINOR);
	return 0;
}

int duck_load(struct kymo_error *err)
{
	struct duck found;
	void *handle = NULL;
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (library)
		goto out;
	rc = duck_open_library(&handle, err);
	if (!rc)
		rc = duck_resolve(handle, &found, err);
	if (rc) {
		if (handle)
			dlclose(handle);
		goto out;
	}
	duck = found;
	library = handle;
out:
	pthread_mutex_unlock(&lock);
	return rc;
}

int duck_run(duckdb_connection connection, const char *sql, const char *doing,
	     struct kymo_error *err)
{
	duckdb_result result;
	const char *why;
	int rc = 0;

	memset(&result, 0, sizeof(result));
	if (duck.query(connection, sql, &result) == DuckDBError) {
		why = duck.result_error(&result);
		rc = error_set(err, EIO, "%s: %s", doing, why ? why : "DuckDB gave no reason");
	}
	duck.destroy_result(&result);
	return rc;
}
