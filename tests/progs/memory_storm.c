/*
 * Turns the recording of allocations on and off, over and over, while eight threads do what
 * programs do: allocate, fork, load and unload libraries, take signals.
 *
 *	memory_storm LIBRARY SWITCHES PLUGIN
 *		LIBRARY: libkymo_memory.so; PLUGIN: a library to load and unload
 *
 * Prints how often each was done. Exits with status 4 if the content of a block changes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/memory/memory.h"

static int over;
static long done[4]; /* allocations, forks, libraries, signals */
static const char *plugin;

static void on_signal(int number)
{
	int kept = errno;

	(void)number;
	__atomic_fetch_add(&done[3], 1, __ATOMIC_RELAXED);
	errno = kept;
}

static bool is_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_RELAXED);
}

static void *replace(unsigned char *old, size_t bytes, unsigned seed)
{
	unsigned char *ptr = seed % 3 == 0   ? realloc(old, bytes)
			     : seed % 3 == 1 ? malloc(bytes)
					     : calloc(1, bytes);

	if (seed % 3)
		free(old);
	if (!ptr)
		exit(3);
	ptr[0] = ptr[bytes - 1] = (unsigned char)bytes;
	return ptr;
}

static void *allocate(void *argument)
{
	struct {
		unsigned char *ptr;
		size_t bytes;
	} kept[64] = { 0 };
	unsigned seed = (unsigned)(uintptr_t)argument * 7919 + 1;

	while (!is_over()) {
		unsigned at = (seed = seed * 1103515245 + 12345) >> 8;
		size_t bytes = at % 97 == 0 ? 70000 + at % 9999 : at % 5000 + 1;

		at %= 64;
		if (kept[at].ptr &&
		    (kept[at].ptr[0] != (unsigned char)kept[at].bytes ||
		     kept[at].ptr[kept[at].bytes - 1] != (unsigned char)kept[at].bytes))
			_exit(4);
		kept[at].ptr = replace(kept[at].ptr, bytes, seed >> 16);
		kept[at].bytes = bytes;
		__atomic_fetch_add(&done[0], 1, __ATOMIC_RELAXED);
	}
	for (int i = 0; i < 64; i++)
		free(kept[i].ptr);
	return NULL;
}

static void *fork_over_and_over(void *unused)
{
	(void)unused;
	while (!is_over()) {
		pid_t child = fork();

		if (!child) {
			free(malloc(100000));
			free(malloc(100));
			_exit(0);
		}
		if (child > 0) {
			int status;

			while (waitpid(child, &status, 0) < 0 && errno == EINTR)
				;
			if (status)
				_exit(5);
			__atomic_fetch_add(&done[1], 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void *load_and_unload(void *unused)
{
	(void)unused;
	while (!is_over()) {
		void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
		void *(*make)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plugin_make")
						: NULL;

		if (!make)
			_exit(6);
		free(make(200000));
		free(make(200));
		dlclose(library);
		__atomic_fetch_add(&done[2], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A library may not be unloaded while its code is called: threads have the program's own
   functions. */
int main(int argc, char **argv)
{
	void *(*const work[8])(
		void *) = { allocate, allocate, allocate,	    allocate,
			    allocate, allocate, fork_over_and_over, load_and_unload };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*start)(struct kymo_memory_watch *, enum kymo_memory_mode);
	void (*stop)(struct kymo_memory_watch *);
	pthread_t threads[8];
	int switches;

	if (!library) {
		fprintf(stderr, "%s\n",
			argc > 3 ? dlerror() : "memory_storm LIBRARY SWITCHES PLUGIN");
		return 2;
	}
	start = (int (*)(struct kymo_memory_watch *, enum kymo_memory_mode))dlsym(
		library, "kymo_memory_start");
	stop = (void (*)(struct kymo_memory_watch *))dlsym(library, "kymo_memory_stop");
	switches = atoi(argv[2]);
	plugin = argv[3];
	sigaction(SIGPROF, &action, NULL);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work[i], (void *)(uintptr_t)i);
	setitimer(ITIMER_PROF, &often, NULL);
	for (int i = 0; i < switches; i++) {
		struct kymo_memory_watch watch;

		if (start(&watch, i % 3 ? KYMO_MEMORY_SAMPLED : KYMO_MEMORY_EXACT))
			return 7;
		usleep(300);
		stop(&watch);
		if (i % 10 == 0)
			usleep(1000); /* and a while without it */
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	printf("%d %d %d %d\n", done[0] > 0, done[1] > 0, done[2] > 0, done[3] > 0);
	return 0;
}
