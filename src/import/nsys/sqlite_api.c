#include "import/nsys/sqlite_api.h"

#include <dlfcn.h>
#include <errno.h>

#define SQLITE_LIBRARY "libsqlite3.so.0"

struct sqlite_api sqlite_api;

int sqlite_api_load(struct kymo_error *err)
{
	void *library = dlopen(SQLITE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;

	if (!library)
		return error_set(err, ENOENT,
				 "exports of nsys need libsqlite3: " SQLITE_LIBRARY
				 " cannot be loaded; install it: apt-get install libsqlite3-0");
#define X(name) \
	*(void **)&sqlite_api.name = dlsym(library, "sqlite3_" #name); \
	if (!sqlite_api.name) \
		missing = "sqlite3_" #name;
	SQLITE_FUNCTIONS(X)
#undef X
	if (missing)
		return error_set(err, ENOTSUP,
				 "this " SQLITE_LIBRARY " lacks %s; install a newer one", missing);
	return 0;
}
