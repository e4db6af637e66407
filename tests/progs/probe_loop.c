/* A zone every few milliseconds until standard input ends, at most for two minutes. Words: "thread"
   begins a second thread at each line that comes in, which records one zone; "fork" and "exec"
   begin with a child that does the same; "start" starts one by a shell when a line comes in, and
   "again" begins anew in its own place. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/kymo.h>

static void *one_zone(void *unused)
{
	KYMO_SCOPE("thread");
	return unused;
}

static void start_by_shell(void)
{
	char own[512] = "";

	if (readlink("/proc/self/exe", own, sizeof(own) - 1) > 0 && !fork())
		execl("/bin/sh", "sh", "-c", "\"$0\" child; :", own, NULL);
}

static void loop(const char *word)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	pthread_t thread;
	char text[256];

	for (int i = 0; i < 24000; i++) {
		KYMO_SCOPE("work");
		if (poll(&input, 1, 5) <= 0)
			continue;
		if (read(0, text, sizeof(text)) <= 0)
			return;
		if (!strcmp(word, "start"))
			start_by_shell();
		if (!strcmp(word, "again"))
			execl("/proc/self/exe", "probe_loop", "child", NULL);
		if (!strcmp(word, "thread") && !pthread_create(&thread, NULL, one_zone, NULL))
			pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	pid_t child = !strcmp(word, "fork") || !strcmp(word, "exec") ? fork() : -1;

	if (!child && !strcmp(word, "exec"))
		execl("/proc/self/exe", argv[0], "child", NULL);
	if (child > 0)
		printf("%d\n", (int)child);
	else if (child < 0 && strcmp(word, "child") != 0)
		puts("begun");
	fflush(stdout);
	loop(word);
	if (child > 0)
		waitpid(child, NULL, 0);
	return 0;
}
