/* plugin_host PLUGIN.so TIMES: loads, uses and unloads it that often; the last time a region is
   left open. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>

static int (*work)(int leave_open);
static pthread_barrier_t used, gone;

/* Its regions are unloaded when it ends. */
static void *use(void *context)
{
	for (int i = 0; i < 10; i++)
		work(0);
	pthread_barrier_wait(&used);
	pthread_barrier_wait(&gone);
	return context;
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[2]) : 1;

	pthread_barrier_init(&used, NULL, 2);
	pthread_barrier_init(&gone, NULL, 2);
	for (int i = 0; i < times; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		pthread_t thread;

		if (!library)
			return fprintf(stderr, "%s\n", dlerror()), 1;
		*(void **)(void *)&work = dlsym(library, "plugin_work");
		if (pthread_create(&thread, NULL, use, NULL))
			return 1;
		for (int n = 0; n < 10; n++)
			work(0);
		pthread_barrier_wait(&used);
		if (i + 1 == times)
			work(1);
		if (dlclose(library) || dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD))
			return fprintf(stderr, "it is still there\n"), 1;
		pthread_barrier_wait(&gone);
		pthread_join(thread, NULL);
	}
	puts("unloaded");
	return 0;
}
