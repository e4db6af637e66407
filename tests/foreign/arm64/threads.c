/*
 * Three threads record beside main, a child of a fork goes on by itself, and both die of SIGKILL
 * inside a zone: what a recorder has to get right on every machine, the order of its stores and the
 * kernel's numbers above all.
 */
#include <kymo/kymo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define TURNS 5000

static void *work(void *unused)
{
	for (int turn = 0; turn < TURNS; turn++) {
		KYMO_SCOPE("turn");
		kymo_counter("turns", turn);
	}
	return unused;
}

static void die(void)
{
	kymo_mark("the last word", "");
	raise(SIGKILL);
}

int main(void)
{
	pthread_t threads[THREADS];
	pid_t child;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	child = fork();
	if (child == 0) {
		KYMO_SCOPE("in the child");
		die();
	}
	waitpid(child, NULL, 0);
	puts("all turns are done");
	fflush(stdout);
	KYMO_SCOPE("in the parent");
	die();
	return 1;
}
