#include "itt.h"

#include <pthread.h>
#include <string.h>

/* The static part, as far as it is used: its functions in a list that ends without a name. */
struct itt_api {
	const char *name;
	void **pointer;
	void *init;
	void *none; /* does nothing */
	int group;
};

struct itt_global {
	unsigned char magic[8];
	unsigned long major, minor, build;
	volatile long initialized, mutex_initialized, atomic_counter;
	pthread_mutex_t mutex;
	void *library;
	void *error_handler;
	const char **path;
	struct itt_api *list;
};

#define PREFIX "__itt_"
#define MAJOR 3u

static void *itt_api_find(const struct itt_function *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return list->function;
	return NULL;
}

static void *itt_api_function(const char *name)
{
	void *function;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return NULL;
	function = itt_api_find(itt_tasks, name + strlen(PREFIX));
	return function ? function : itt_api_find(itt_values, name + strlen(PREFIX));
}

/* Called by the static part, which holds its lock. Other major versions have other structs: they
   are left alone, and their calls do nothing. */
KYMO__EXPORT void __itt_api_init(struct itt_global *global, int groups);
void __itt_api_init(struct itt_global *global, int groups)
{
	(void)groups;
	if (!global || global->major != MAJOR || !global->list)
		return;
	for (struct itt_api *api = global->list; api->name; api++) {
		void *function = itt_api_function(api->name);

		if (api->pointer)
			*api->pointer = function ? function : api->none;
	}
}
