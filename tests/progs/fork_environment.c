/*
 * As a shell does in a forked child: moves its environment with realloc() while libkymo has not
 * begun in this process yet, and under --memory looks at every block. Prints "ok" from the child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* An array that cannot be read, as one that realloc() has just freed. */
static void hide_environment(void)
{
	char **gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (gone == MAP_FAILED)
		exit(2);
	environ = gone;
}

static void work(void)
{
	for (int i = 0; i < 2000; i++) {
		void *block = malloc(4096 + (size_t)i);

		if (!block)
			exit(2);
		memset(block, 1, 16);
		free(block);
	}
}

int main(void)
{
	pid_t child;
	int status = 0;

	work();
	child = fork();
	if (!child) {
		hide_environment();
		work();
		if (write(1, "ok\n", 3) != 3)
			_exit(2);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
