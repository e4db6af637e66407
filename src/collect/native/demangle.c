#include "collect/native/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static char *(*plain_name)(const char *symbol, char *out, size_t *bytes, int *status);

/* Loaded for the first name and never unloaded. */
static void demangle_load(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

	if (library)
		*(void **)&plain_name = dlsym(library, "__cxa_demangle");
}

char *demangle(const char *symbol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int status;

	if (!demangle_is_mangled(symbol, strlen(symbol)))
		return NULL;
	pthread_once(&once, demangle_load);
	return plain_name ? plain_name(symbol, NULL, NULL, &status) : NULL;
}
