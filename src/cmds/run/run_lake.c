#include "cmds/run/run_lake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmds/cmds.h"
#include "collect/say.h"

#define WAIT_MS 60000 /* for the last flush; KYMO_LAKE_WAIT, in seconds, changes it */

int run_lake_tier(struct run_lake *lake, const char *tier)
{
	lake->tier = tier;
	if (strlen(tier) != 1 || !strchr("012", *tier))
		return cmds_wrong("run", "--lake-tier takes 0, 1 or 2, not \"%s\"", tier);
	return -1;
}

/* The helper inherits its two pipes alone, as standard input and error. It is in a session of its
   own: Ctrl-C ends the program, and then its last rows are written. */
static int run_lake_spawn(struct run_lake *lake, int in, int out)
{
	char pid[16];
	char *words[] = { "kymo",   "lake", "follow", pid, (char *)lake->directory,
			  "--tier", NULL,   NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	words[6] = (char *)(lake->tier ? lake->tier : "1");
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	rc = posix_spawn(&lake->pid, "/proc/self/exe", &actions, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

void run_lake_start(struct run_lake *lake, int *hold)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };
	int rc = 0;

	lake->to = lake->from = -1;
	if (!lake->directory)
		return;
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		rc = errno;
	if (!rc)
		rc = run_lake_spawn(lake, in[0], out[1]);
	if (in[0] >= 0)
		close(in[0]);
	if (out[1] >= 0)
		close(out[1]);
	hold[0] = lake->to = in[1];
	hold[1] = lake->from = out[0];
	if (!rc)
		return;
	say("cannot write into the lake %s: %s", lake->directory, strerror(rc));
	lake->pid = 0;
}

static int run_lake_wait_ms(void)
{
	const char *seconds = getenv("KYMO_LAKE_WAIT");

	return seconds && *seconds ? (int)(strtod(seconds, NULL) * 1000) : WAIT_MS;
}

/* The messages of the helper, line by line, until it ends. False: it takes too long. */
static bool run_lake_read(int fd)
{
	struct pollfd poll_for = { .fd = fd, .events = POLLIN };
	char text[1024];
	size_t used = 0;
	ssize_t got = 1;

	while (got > 0 && used + 1 < sizeof(text)) {
		if (poll(&poll_for, 1, run_lake_wait_ms()) <= 0)
			return false;
		got = read(fd, text + used, sizeof(text) - used - 1);
		used += got > 0 ? (size_t)got : 0;
	}
	text[used] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		say("%s", line);
	}
	return true;
}

void run_lake_end(struct run_lake *lake, const char *recording)
{
	if (lake->pid) {
		/* A helper that was killed reads nothing. */
		signal(SIGPIPE, SIG_IGN);
		if (write(lake->to, recording, strlen(recording)) < 0)
			say("the helper that writes into the lake has ended; to add the rest: "
			    "kymo lake add %s %s",
			    recording, lake->directory);
		close(lake->to);
		if (!run_lake_read(lake->from))
			say("the lake %s is slow; the last rows are being written in the "
			    "background",
			    lake->directory);
		else
			waitpid(lake->pid, NULL, WNOHANG);
		lake->to = -1;
	}
	if (lake->to >= 0)
		close(lake->to);
	if (lake->from >= 0)
		close(lake->from);
	lake->to = lake->from = -1;
}
