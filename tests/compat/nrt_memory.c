/*
 * nrt_memory MODEL all|load: all calls, or those that load and run the model alone.
 *
 * Every allocation of the library fails once, each in a pass of its own: no call may crash, give
 * anything but NRT_SUCCESS or NRT_RESOURCE, or leave something behind that the next pass trips
 * over. Prints how many allocations there were.
 *
 * malloc, calloc and realloc are this program's own; mmap too, for what libkymo takes from the
 * kernel. They fail only for the libraries: what calls from elsewhere (libc, an OpenCL driver) gets
 * its memory.
 */
#define _GNU_SOURCE
#include <nrt/nrt_profile.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

static long countdown; /* at 0 that one fails; below: none do */
static long seen;
static int failed;

/* Is the caller in one of kymo's libraries? dladdr() takes no memory. */
static int fails_for(const void *caller)
{
	Dl_info info;

	if (countdown < 0 || !dladdr(caller, &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, "libkymo"))
		return 0;
	seen++;
	if (countdown-- != 0)
		return 0;
	failed = 1;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t bytes)
{
	return fails_for(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails_for(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return fails_for(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fails_for(__builtin_return_address(0)))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* ---- one pass ---- */

static int wrong;

/* True: it succeeded. While nothing has failed yet it has to; afterwards, too, but for the one that
   fails. */
static int ok(const char *call, NRT_STATUS status, int had_failed)
{
	if (status == NRT_SUCCESS)
		return 1;
	if (status != NRT_RESOURCE || had_failed || !failed) {
		printf("%s: %s\n", call, nrt_get_status_as_str(status));
		wrong = 1;
	}
	return 0;
}
#define OK(call) \
	({ \
		int had_failed = failed; \
		ok(#call, call, had_failed); \
	})

static void profile(nrt_model_t *model)
{
	if (!OK(nrt_profile_start(model, "memory.ntff")))
		return;
	OK(nrt_execute(model, NULL, NULL));
	if (!OK(nrt_profile_stop("memory.ntff")))
		OK(nrt_profile_stop("memory.ntff")); /* it goes on until then */
}

static void fly(nrt_model_t *model)
{
	nrt_profile_continuous_options_t *options = NULL;

	if (!OK(nrt_profile_continuous_options_allocate(&options)))
		return;
	OK(nrt_profile_continuous_options_set_output_dir(options, "memory"));
	if (OK(nrt_profile_continuous_start(options))) {
		OK(nrt_execute(model, NULL, NULL));
		OK(nrt_profile_continuous_save(0, options));
		OK(nrt_profile_continuous_stop());
	}
	OK(nrt_profile_continuous_options_free(options));
}

static void list_types(nrt_inspect_config_t *config)
{
	const char **list;
	size_t count;

	if (OK(nrt_inspect_config_get_all_activity_types(&list, &count)))
		nrt_inspect_config_free_activity_types(list, count);
	if (OK(nrt_inspect_config_get_enabled_activity_types(config, &list, &count)))
		nrt_inspect_config_free_activity_types(list, count);
}

static void inspect(nrt_model_t *model)
{
	nrt_inspect_config_t *config = NULL;

	if (!OK(nrt_inspect_config_allocate(&config)))
		return;
	OK(nrt_inspect_config_set_output_dir(config, "memory"));
	OK(nrt_inspect_config_set_output_dir(config, "memory")); /* the first one is freed */
	OK(nrt_inspect_config_set_activity(config, "all", true));
	list_types(config);
	for (int by_environment = 0; by_environment < 2; by_environment++)
		if (by_environment ? OK(nrt_inspect_begin())
				   : OK(nrt_inspect_begin_with_options(config))) {
			OK(nrt_execute(model, NULL, NULL));
			if (!OK(nrt_inspect_stop()))
				OK(nrt_inspect_stop());
		}
	OK(nrt_inspect_config_free(config));
}

static int only_load;

static void pass(const char *text)
{
	nrt_model_t *model = NULL;

	if (!OK(nrt_load(text, strlen(text), 0, 1, &model)))
		return;
	if (only_load) {
		OK(nrt_execute(model, NULL, NULL));
	} else {
		profile(model);
		fly(model);
		inspect(model);
	}
	OK(nrt_unload(model));
}

int main(int argc, char **argv)
{
	static char text[1 << 16];
	FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
	long allocations;

	countdown = -1;
	only_load = argc > 2 && !strcmp(argv[2], "load");
	if (!file || !fread(text, 1, sizeof(text) - 1, file))
		return 2;
	fclose(file);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", "memory", 1);
	OK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, NULL, NULL));
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	pass(text); /* once with memory: what is made only once is not in the way */
	for (allocations = 0; allocations < 10000; allocations++) {
		failed = 0;
		countdown = allocations;
		pass(text);
		countdown = -1;
		if (!failed)
			break;
	}
	pass(text);
	printf("%ld allocations failed\n", allocations);
	return wrong;
}
