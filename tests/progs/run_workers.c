/* run_workers COUNT ROWS [stay]: forks short-lived workers that record, while another thread of the
   parent records too. With `stay`, one more child is left behind that runs on for a while. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/kymo.h>

static atomic_int stop;
static long parent_rows;

static void *record(void *unused)
{
	while (!atomic_load(&stop)) {
		{
			KYMO_SCOPE("parent");
		}
		parent_rows++;
		usleep(50);
	}
	return unused;
}

static void work(long rows)
{
	for (long i = 0; i < rows; i++) {
		KYMO_SCOPE("worker");
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 200, rows = argc > 2 ? atol(argv[2]) : 10;
	pthread_t thread;

	pthread_create(&thread, NULL, record, NULL);
	for (long i = 0; i < count; i++) {
		if (fork() == 0)
			work(rows);
		if (i % 4 == 3)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	while (wait(NULL) > 0)
		;
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	if (argc > 3 && fork() == 0) {
		KYMO_SCOPE("left behind");
		close(0), close(1), close(2);
		sleep(3);
		_exit(0);
	}
	if (argc > 3)
		usleep(100000); /* it has made its files by then */
	printf("%ld %ld\n", count * rows, parent_rows);
	return 0;
}
