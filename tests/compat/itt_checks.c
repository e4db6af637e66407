/*
 * A program that is marked with the ITT API: the static part of the protocol, written after its
 * documentation, and a call of each kind. It links nothing of kymo.
 *
 *	itt_checks		each kind once
 *	itt_checks kill		leaves a task and an overlapped task open and kills itself
 *	itt_checks cost N	N tasks; prints the ns of CPU time of one
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct domain {
	volatile int flags;
	const char *name;
	void *wide;
	int extra1;
	void *extra2;
	struct domain *next;
};
struct string {
	const char *text;
	void *wide;
	int extra1;
	void *extra2;
	struct string *next;
};
struct id {
	unsigned long long d1, d2, d3;
};

static const struct id none;

static void nothing(void)
{
}

static struct domain *(*domain_create)(const char *);
static struct string *(*string_create)(const char *);
static void (*task_begin)(const struct domain *, struct id, struct id, struct string *);
static void (*task_end)(const struct domain *);
static void (*overlapped_begin)(const struct domain *, struct id, struct id, struct string *);
static void (*overlapped_end)(const struct domain *, struct id);
static void (*region_begin)(const struct domain *, struct id, struct id, struct string *);
static void (*region_end)(const struct domain *, struct id);
static void (*frame_begin)(const struct domain *, struct id *);
static void (*frame_end)(const struct domain *, struct id *);
static void (*frame_submit)(const struct domain *, struct id *, unsigned long long,
			    unsigned long long);
static unsigned long long (*get_timestamp)(void);
static int (*event_create)(const char *, int);
static int (*event_start)(int);
static int (*event_end)(int);
static void (*metadata_add)(const struct domain *, struct id, struct string *, int, size_t, void *);
static void (*metadata_str_add)(const struct domain *, struct id, struct string *, const char *,
				size_t);
static void *(*counter_create)(const char *, const char *);
static void (*counter_inc_delta)(void *, unsigned long long);
static void (*counter_set)(void *, void *);
static void *(*counter_create_typed)(const char *, const char *, int);
static void (*marker)(const struct domain *, struct id, struct string *, int);
static void (*thread_set_name)(const char *);
static const char *(*api_version)(void);
static void (*unknown)(void);

struct api {
	const char *name;
	void **pointer;
	void *init, *none;
	int group;
};

#define API(name, pointer) \
	{ \
		"__itt_" name, (void **)&(pointer), NULL, (void *)nothing, 1 \
	}
static struct api list[] = {
	API("domain_create", domain_create),
	API("string_handle_create", string_create),
	API("task_begin", task_begin),
	API("task_end", task_end),
	API("task_begin_overlapped", overlapped_begin),
	API("task_end_overlapped", overlapped_end),
	API("region_begin", region_begin),
	API("region_end", region_end),
	API("frame_begin_v3", frame_begin),
	API("frame_end_v3", frame_end),
	API("frame_submit_v3", frame_submit),
	API("get_timestamp", get_timestamp),
	API("event_create", event_create),
	API("event_start", event_start),
	API("event_end", event_end),
	API("metadata_add", metadata_add),
	API("metadata_str_add", metadata_str_add),
	API("counter_create", counter_create),
	API("counter_create_typed", counter_create_typed),
	API("counter_inc_delta", counter_inc_delta),
	API("counter_set_value", counter_set),
	API("marker", marker),
	API("thread_set_name", thread_set_name),
	API("api_version", api_version),
	API("no_such_call", unknown),
	{ NULL, NULL, NULL, NULL, 0 },
};

static struct {
	unsigned char magic[8];
	unsigned long major, minor, build;
	volatile long initialized, mutex_initialized, counter;
	pthread_mutex_t mutex;
	void *library, *error_handler;
	const char **path;
	struct api *list;
	void *more[16];
} global = { .major = 3, .mutex = PTHREAD_MUTEX_INITIALIZER, .list = list };

static void load(void)
{
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	void (*init)(void *, int) = NULL;

	global.library = path ? dlopen(path, RTLD_LAZY) : NULL;
	if (global.library)
		*(void **)&init = dlsym(global.library, "__itt_api_init");
	if (!init) {
		puts("no collector");
		exit(3);
	}
	init(&global, -1);
}

static void *end_elsewhere(void *domain)
{
	const struct id id = { 7, 0, 0 };

	thread_set_name("ender");
	overlapped_end(domain, id);
	return NULL;
}

static void each_kind(struct domain *domain)
{
	struct domain *other = domain_create("other");
	const struct id first = { 7, 0, 0 }, second = { 8, 0, 0 };
	unsigned long long begin, sizes[2] = { 3, 4 };
	double load = 0.5;
	int event = event_create("event", 5);
	void *bytes = counter_create("bytes", "checks");
	pthread_t thread;

	task_begin(domain, none, none, string_create("outer"));
	task_begin(other, none, none, string_create("inner"));
	metadata_add(other, none, string_create("sizes"), 1, 2, sizes);
	task_end(other);
	metadata_str_add(domain, none, string_create("layer"), "conv", 0);
	marker(domain, none, string_create("marker"), 1);
	task_end(domain);
	overlapped_begin(domain, first, none, string_create("first"));
	overlapped_begin(domain, second, none, string_create("second"));
	metadata_str_add(domain, first, string_create("of"), "first", 5);
	if (pthread_create(&thread, NULL, end_elsewhere, domain) || pthread_join(thread, NULL))
		abort();
	overlapped_end(domain, second);
	region_begin(domain, second, none, string_create("region"));
	region_end(domain, second);
	frame_begin(domain, NULL);
	frame_end(domain, NULL);
	begin = get_timestamp();
	frame_submit(other, NULL, begin, 0);
	event_start(event);
	event_end(event);
	counter_inc_delta(bytes, 40);
	counter_inc_delta(bytes, 2);
	counter_set(counter_create_typed("load", "checks", 8), &load);
	unknown();
}

static void cost(struct domain *domain, long count)
{
	struct string *name = string_create("task");
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (long i = 0; i < count; i++) {
		task_begin(domain, none, none, name);
		task_end(domain);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	printf("%.2f\n",
	       ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
		       (double)count);
}

int main(int argc, char **argv)
{
	const struct id id = { 9, 0, 0 };
	struct domain *domain;

	load();
	domain = domain_create("checks");
	if (!domain || domain != domain_create("checks") || !domain->flags)
		return 4;
	/* OpenCV's marks are recorded on request. */
	if (!getenv("KYMO_OPENCV") != !api_version())
		return 5;
	thread_set_name("marked");
	if (argc > 2 && !strcmp(argv[1], "cost")) {
		cost(domain, atol(argv[2]));
		return 0;
	}
	each_kind(domain);
	if (argc > 1 && !strcmp(argv[1], "kill")) {
		overlapped_begin(domain, id, none, string_create("pending"));
		task_begin(domain, none, none, string_create("last"));
		raise(SIGKILL);
	}
	return 0;
}
