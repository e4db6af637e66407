/* Records while the file system under its recording fills up and is freed again, and says how many
   zones it marked before, meanwhile and after: fault_room FILE. FILE takes all the room there is
   for a while. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

static void *work(void *unused)
{
	for (int i = 0; i < 20; i++) {
		KYMO_SCOPE("of a thread");
	}
	return unused;
}

static void in_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
}

static void take_all(const char *path)
{
	static char block[65536];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	size_t bytes = sizeof(block);

	while (bytes)
		if (write(fd, block, bytes) <= 0)
			bytes /= 2;
	close(fd);
}

int main(int argc, char **argv)
{
	int count = 0;

	if (argc < 2)
		return 2;
	for (int i = 0; i < 500; i++, count++) {
		KYMO_SCOPE("before");
	}
	take_all(argv[1]);
	for (int i = 0; i < 50000; i++, count++) {
		KYMO_SCOPE("meanwhile");
		if (i % 1000 == 0)
			kymo_counter("meanwhile", i);
	}
	in_a_thread();
	unlink(argv[1]);
	for (int i = 0; i < 200; i++, count++) {
		KYMO_SCOPE("after");
		usleep(1000); /* attempts to get room are 10 ms apart */
	}
	in_a_thread();
	printf("%d\n", count + 40);
	return 0;
}
