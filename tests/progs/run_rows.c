/* Marks zones and says how many: run_rows COUNT [ROWS_PER_MS [THREADS]]. Counts by itself, so that
   a test can compare. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kymo/kymo.h>

static long count, per_ms;

static void pace(long done, const struct timespec *start)
{
	struct timespec due = *start;

	due.tv_nsec += (done / per_ms % 1000) * 1000000;
	due.tv_sec += done / per_ms / 1000 + due.tv_nsec / 1000000000;
	due.tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static void *work(void *unused)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < count; i++) {
		KYMO_SCOPE("row");
		if (per_ms && i % (per_ms * 5) == 0)
			pace(i, &start);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int thread_count = argc > 3 ? atoi(argv[3]) : 1;

	count = argc > 1 ? atol(argv[1]) : 1000;
	per_ms = argc > 2 ? atol(argv[2]) : 0;
	for (int i = 1; i < thread_count && i < 64; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	work(NULL);
	for (int i = 1; i < thread_count && i < 64; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", count * thread_count);
	return 0;
}
