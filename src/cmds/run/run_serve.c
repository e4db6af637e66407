#include "cmds/run/run_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cmds.h"
#include "collect/say.h"

#define WAIT_MS 10000

int run_serve_word(struct run_serve *serve, const char *port)
{
	size_t digits = port ? strspn(port, "0123456789") : 0;

	serve->on = true;
	serve->port = port;
	if (port && (!digits || digits > 5 || port[digits] || !atoi(port) || atoi(port) > 65535))
		return cmds_wrong("run", "--serve takes a port from 1 to 65535, not \"%s\"", port);
	return -1;
}

/* The viewer inherits only the pipe `out`. A process that waits for the end of our output must not
   wait for the viewer. */
static int run_serve_spawn(const struct run_serve *serve, int out)
{
	char pid[16];
	char *words[] = { "kymo", "serve", "--quiet", "--while", pid, "--port", NULL, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t child;
	int rc;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	words[5] = serve->port ? words[5] : NULL;
	words[6] = (char *)serve->port;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	rc = posix_spawn(&child, "/proc/self/exe", &actions, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* Reads the viewer's messages up to its address or the end. */
static void run_serve_read(int fd, char *out, size_t out_bytes)
{
	struct pollfd poll_for = { .fd = fd, .events = POLLIN };
	size_t used = 0;
	ssize_t got = 1;

	out[0] = '\0';
	while (got > 0 && used + 1 < out_bytes && poll(&poll_for, 1, WAIT_MS) > 0) {
		const char *link;

		got = read(fd, out + used, out_bytes - used - 1);
		used += got > 0 ? (size_t)got : 0;
		out[used] = '\0';
		link = strstr(out, "http://");
		if (link && strchr(link, '\n'))
			break;
	}
}

static void run_serve_print(char *messages)
{
	char *link = strstr(messages, "http://"), *colon = strstr(messages, ": ");

	messages[strcspn(messages, "\n")] = '\0';
	if (link) {
		link[strcspn(link, "\n")] = '\0';
		if (link != colon + 2) /* the message that the port is in use */
			say("%s", colon + 2);
		say("the viewer is at %s", link);
	} else {
		say("cannot start the viewer: %s", colon ? colon + 2 : "it printed no address");
	}
}

void run_serve_start(const struct run_serve *serve)
{
	char messages[2048];
	int ends[2], rc;

	if (!serve->on)
		return;
	rc = pipe2(ends, O_CLOEXEC) ? errno : 0;
	if (rc) {
		say("cannot start the viewer: %s", strerror(rc));
		return;
	}
	rc = run_serve_spawn(serve, ends[1]);
	close(ends[1]);
	if (rc)
		say("cannot start the viewer: %s", strerror(rc));
	else
		run_serve_read(ends[0], messages, sizeof(messages));
	close(ends[0]);
	if (!rc)
		run_serve_print(messages);
}
