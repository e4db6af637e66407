/*
 * A task of the ITT API through libkymo_itt.so against the native zone.
 *
 *	KYMO=on INTEL_LIBITTNOTIFY64=build/libkymo_itt.so compat_itt
 *		compat.itt_task
 */
#include <dlfcn.h>
#include <pthread.h>

#include "../bench.h"

#define SLICE 16384u
#define PAIRS 240
#define WORK() __asm__ volatile("" ::: "memory")

/* The static part of the protocol, as far as it is used. */
struct id {
	unsigned long long d1, d2, d3;
};
struct api {
	const char *name;
	void **pointer;
	void *init, *none;
	int group;
};

static void *(*domain_create)(const char *);
static void *(*string_create)(const char *);
static void (*task_begin)(void *, struct id, struct id, void *);
static void (*task_end)(void *);
static void *domain, *name;

static struct api list[] = {
	{ "__itt_domain_create", (void **)&domain_create, NULL, NULL, 0 },
	{ "__itt_string_handle_create", (void **)&string_create, NULL, NULL, 0 },
	{ "__itt_task_begin", (void **)&task_begin, NULL, NULL, 0 },
	{ "__itt_task_end", (void **)&task_end, NULL, NULL, 0 },
	{ NULL, NULL, NULL, NULL, 0 },
};

static struct {
	unsigned char magic[8];
	unsigned long major, minor, build;
	long initialized, mutex_initialized, counter;
	pthread_mutex_t mutex;
	void *library, *error_handler, *path;
	struct api *list;
} global = { .major = 3, .list = list };

static void tasks(uint64_t count, void *context)
{
	const struct id none = { 0, 0, 0 };

	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		task_begin(domain, none, none, name);
		WORK();
		task_end(domain);
	}
}

static void zones(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		KYMO_SCOPE("bench.zone");
		WORK();
	}
}

int main(void)
{
	static struct bench_comparison result;
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	void (*init)(void *, int) = NULL;

	if (library)
		*(void **)&init = dlsym(library, "__itt_api_init");
	if (!init || !kymo_enabled()) {
		fprintf(stderr, "compat_itt: set KYMO=on and INTEL_LIBITTNOTIFY64\n");
		return 1;
	}
	init(&global, 0);
	domain = domain_create("bench");
	name = string_create("bench.task");
	bench_compare(&result, tasks, zones, SLICE, PAIRS, NULL);
	bench_emit_comparison("compat.itt_task", &result);
	return 0;
}
