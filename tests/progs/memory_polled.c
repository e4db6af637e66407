/*
 * A server's loop, as it was written before anybody thought of memory: blocks of 100,000 bytes come
 * and go until its standard input ends. It says its pid first. With the word "poll" it calls
 * kymo_poll() in each round.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

__attribute__((noinline, noclone)) void *serve(size_t bytes)
{
	KYMO_SCOPE("serve");
	return malloc(bytes);
}

int main(int argc, char **argv)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	bool polls = argc > 1 && !strcmp(argv[1], "poll");

	if (polls)
		kymo_poll();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	do {
		void *volatile block = serve(100000);

		free(block);
		if (polls)
			kymo_poll();
	} while (poll(&input, 1, 1) == 0);
	return 0;
}
