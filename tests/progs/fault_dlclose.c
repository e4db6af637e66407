/* Loads libraries one after another, lets each one record, and unloads it: fault_dlclose
   LIBRARY.so… */
#include <dlfcn.h>
#include <stdio.h>

#include <kymo/kymo.h>

static int use(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*work)(void) = NULL;

	if (library)
		*(void **)(void *)&work = dlsym(library, "plugin_work");
	if (!work) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	for (int i = 0; i < 10; i++)
		work();
	dlclose(library);
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	puts(library ? "still there" : "gone");
	return library != NULL;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		KYMO_SCOPE("load");
		if (use(argv[i]))
			return 1;
	}
	return 0;
}
