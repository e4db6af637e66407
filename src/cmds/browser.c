#include "cmds/browser.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_in_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* The intermediate process exits at once, so that nothing waits for the browser. */
bool browser_open(const char *link)
{
	pid_t child;

	if (!is_in_environment("DISPLAY") && !is_in_environment("WAYLAND_DISPLAY"))
		return false;
	fflush(NULL);
	child = fork();
	if (child < 0)
		return false;
	if (!child) {
		if (!fork()) {
			setsid();
			execlp("xdg-open", "xdg-open", link, (char *)NULL);
		}
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return true;
}
