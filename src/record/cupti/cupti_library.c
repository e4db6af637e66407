/* Finds libcupti. A torch wheel has loaded its own; a second copy would be another CUPTI. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/cupti/cupti.h"

struct found {
	char cupti[PATH_MAX], cudart[PATH_MAX]; /* loaded; "": none */
};

static int look_at_object(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct found *found = context;
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;

	(void)bytes;
	if (!strncmp(name, "libcupti.so", 11))
		snprintf(found->cupti, sizeof(found->cupti), "%s", info->dlpi_name);
	if (!strncmp(name, "libcudart.so", 12))
		snprintf(found->cudart, sizeof(found->cudart), "%s", info->dlpi_name);
	return 0;
}

static void *library_open(const char *format, const char *folder, const char *version)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), format, folder, version);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Beside the program's libcudart: as PyPI's wheels and NVIDIA's packages lay them. */
static void *open_beside(char *cudart)
{
	char *slash = strrchr(cudart, '/');
	const char *version = slash ? strstr(slash, ".so.") : NULL;
	char short_version[16] = "";
	void *library = NULL;

	if (!version)
		return NULL;
	snprintf(short_version, sizeof(short_version), "%.*s", (int)strcspn(version + 4, "."),
		 version + 4);
	*slash = '\0';
	library = library_open("%s/libcupti.so.%s", cudart, short_version);
	if (!library)
		library = library_open("%s/../../cuda_cupti/lib/libcupti.so.%s", cudart,
				       short_version);
	if (!library)
		library = library_open("%s/../extras/CUPTI/lib64/libcupti.so.%s", cudart,
				       short_version);
	return library;
}

/* The major version of the driver, as 12; 0: unknown. CUPTI of a later version than the driver's
   does not work. */
static int driver_version(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get)(int *) = NULL;
	int version = 0;

	if (driver)
		*(void **)&get = dlsym(driver, "cuDriverGetVersion");
	if (!get || get(&version))
		return 0;
	return version / 1000;
}

static void *open_any(void)
{
	static const struct {
		const char *suffix;
		int version;
	} versions[] = { { ".13", 13 }, { ".12", 12 }, { ".11.8", 11 }, { "", 0 } };
	static const char *const formats[] = { "%slibcupti.so%s",
					       "%s/usr/local/cuda/extras/CUPTI/lib64/libcupti.so%s",
					       "%s/usr/local/cuda/lib64/libcupti.so%s" };
	int driver = driver_version();
	void *library = NULL;

	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)
		for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]) && !library; f++)
			if (!driver || versions[v].version <= driver)
				library = library_open(formats[f], "", versions[v].suffix);
	return library;
}

static bool library_fill(struct cupti_api *api, void *library)
{
	bool complete = true;

#define NEEDED(function, arguments) \
	*(void **)&api->function = dlsym(library, #function); \
	complete = complete && api->function;
#define OPTIONAL(function, arguments) *(void **)&api->function = dlsym(library, #function);
	CUPTI_FUNCTIONS(NEEDED, OPTIONAL)
#undef NEEDED
#undef OPTIONAL
	return complete;
}

bool cupti_library_find(struct cupti_api *api)
{
	static struct found found; /* too large for a small stack; one thread calls this, once */
	void *library = NULL;

	dl_iterate_phdr(look_at_object, &found);
	if (found.cupti[0])
		library = dlopen(found.cupti, RTLD_NOW | RTLD_NOLOAD);
	if (!library && found.cudart[0])
		library = open_beside(found.cudart);
	if (!library)
		library = open_any();
	return library && library_fill(api, library);
}
