#include "serve/microhttpd.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/files/install_path.h"

#define LIBRARY "libmicrohttpd.so.12"

struct microhttpd microhttpd;

int microhttpd_load(struct kymo_error *err)
{
	void *library = install_path_open(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;

	if (!library)
		return error_set(
			err, ENOENT,
			"the viewer needs libmicrohttpd: " LIBRARY
			" cannot be loaded (%s); install it: apt-get install libmicrohttpd12",
			dlerror());
#define X(name) \
	*(void **)&microhttpd.name = dlsym(library, "MHD_" #name); \
	if (!microhttpd.name) \
		missing = "MHD_" #name;
	MHD_FUNCTIONS(X)
#undef X
	if (missing)
		return error_set(err, ENOTSUP, "this " LIBRARY " lacks %s; install a newer one",
				 missing);
	return 0;
}
