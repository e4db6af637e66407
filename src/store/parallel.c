#include "store/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "kymo/atomic.h"

#define THREADS_MOST 8
#define ITEMS_LEAST 8 /* for each thread: a few are not worth one */

struct parallel {
	size_t count, next; /* next: taken by all threads */
	void (*each)(size_t i, void *context);
	void *context;
};

static void *parallel_work(void *work)
{
	struct parallel *all = work;
	size_t i;

	while ((i = kymo__fetch_add_relaxed(&all->next, 1)) < all->count)
		all->each(i, all->context);
	return NULL;
}

static size_t parallel_threads(size_t count)
{
	cpu_set_t cores;
	size_t most = sched_getaffinity(0, sizeof(cores), &cores) ? 1 : (size_t)CPU_COUNT(&cores);

	most = most < THREADS_MOST ? most : THREADS_MOST;
	return count / ITEMS_LEAST < most ? count / ITEMS_LEAST : most;
}

void parallel_each(size_t count, void (*each)(size_t i, void *context), void *context)
{
	struct parallel all = { .count = count, .each = each, .context = context };
	size_t wanted = parallel_threads(count), begun = 0;
	pthread_t threads[THREADS_MOST];
	sigset_t blocked, before;

	/* Signals are for the threads of the caller. */
	sigfillset(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	while (begun + 1 < wanted && !pthread_create(&threads[begun], NULL, parallel_work, &all))
		begun++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	parallel_work(&all);
	while (begun)
		pthread_join(threads[--begun], NULL);
}
