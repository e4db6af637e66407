/*
 * Zones that do not nest: a region that outlasts the scope around its start, two of them that
 * cross, and a range that another thread ends.
 *
 *	ranges		prints its directory and ends
 *	ranges kill	leaves one of each open and kills itself
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

static struct kymo_region outlasts = KYMO_REGION_INIT("outlasts"),
			  crosses = KYMO_REGION_INIT("crosses");

static void start(struct kymo_region *region)
{
	KYMO_SCOPE("start");
	kymo_region_start(region);
}

static void *end_range(void *range)
{
	kymo_thread_name("ender");
	kymo_range_text(*(uint64_t *)range, "by another thread", 17);
	kymo_range_end(*(uint64_t *)range);
	return NULL;
}

static void end_elsewhere(const char *name)
{
	uint64_t range = kymo_range_begin(name);
	pthread_t thread;

	if (pthread_create(&thread, NULL, end_range, &range))
		abort();
	pthread_join(thread, NULL);
}

static void work(void)
{
	KYMO_SCOPE("work");
	usleep(2000);
}

int main(int argc, char **argv)
{
	kymo_thread_name("main");
	puts(kymo_directory());
	fflush(stdout);
	start(&outlasts);
	work();
	start(&crosses);
	work();
	kymo_region_stop(&outlasts);
	work();
	kymo_region_stop(&crosses);
	end_elsewhere("sent");
	if (argc < 2 || strcmp(argv[1], "kill") != 0)
		return 0;
	start(&outlasts);
	kymo_range_begin("pending");
	{
		KYMO_SCOPE("last");
		raise(SIGKILL);
	}
	return 1;
}
