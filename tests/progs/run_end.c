/* Ends inside an open zone, in the way that its argument names. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kymo/kymo.h>

static void own_handler(int signal_number)
{
	static const char text[] = "own handler\n";
	ssize_t done = write(STDOUT_FILENO, text, sizeof(text) - 1);

	(void)done;
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void end(const char *how, char **argv)
{
	static char *const again[] = { "run_end", "exit", NULL };

	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "_exit"))
		_exit(7);
	if (!strcmp(how, "exit"))
		exit(8);
	if (!strcmp(how, "exec"))
		execv(argv[0], again);
	if (!strcmp(how, "wait"))
		for (;;)
			pause();
}

int main(int argc, char **argv)
{
	struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGSEGV, own_handler);
	for (int i = 0; i < 10; i++) {
		KYMO_SCOPE("before");
	}
	{
		KYMO_SCOPE("open");
		puts("inside");
		fflush(stdout);
		end(argc > 1 ? argv[1] : "exit", argv);
	}
	return 9;
}
