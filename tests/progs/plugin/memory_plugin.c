/* A library that is loaded and unloaded: its constructor allocates, as those of C++ do. */
#include <stdlib.h>

static void *kept;

__attribute__((constructor)) static void begin(void)
{
	kept = malloc(5000);
}

__attribute__((destructor)) static void end(void)
{
	free(kept);
}

__attribute__((visibility("default"))) void *plugin_make(size_t bytes)
{
	return malloc(bytes);
}
