#include "cmds/trigger/trigger_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "cmds/cmds.h"
#include "cmds/guard/guard.h"
#include "record/record.h"
#include "trigger/condition.h"
#include "trigger/watcher.h"

#define READY_MS 10000

/* ---- the watcher ----------------------------------------------------------------------------- */

int trigger_watch_main(int argc, char **argv)
{
	struct watcher_options options = { .note_fd = argc > 2 ? atoi(argv[2]) : -1 };
	char kymo[KYMO_PATH_BYTES];
	struct kymo_error err = { 0 };
	ssize_t bytes = readlink("/proc/self/exe", kymo, sizeof(kymo) - 1);

	if (argc < 2 || bytes <= 0)
		return CMDS_WRONG_USE;
	kymo[bytes] = '\0';
	options.live = argv[1];
	options.kymo = kymo;
	/* Its own messages of kymo commands are not wanted, nor are settings of the program. */
	setenv("KYMO_QUIET", "1", 1);
	return watcher_run(&options, &err) ? CMDS_FAILED : CMDS_OK;
}

/* The pipe stays open in the watcher, as descriptor 3. */
static int spawn_watcher(const char *live, bool detach, int note, pid_t *out)
{
	char *argv[] = { "kymo", "watch-triggers", (char *)live, "3", NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, note, 3);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes,
				 (short)(POSIX_SPAWN_SETSIGMASK |
					 (detach ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP)));
	posix_spawnattr_setpgroup(&attributes, 0);
	rc = posix_spawn(out, "/proc/self/exe", &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

static bool await_note(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char note = '-';

	return poll(&wait, 1, READY_MS) > 0 && read(fd, &note, 1) == 1 && note == '+';
}

int trigger_start(const char *live, bool detach, pid_t *out_pid, struct kymo_error *err)
{
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC))
		return error_set(err, errno, "cannot watch triggers: %s", strerror(errno));
	rc = spawn_watcher(live, detach, ends[1], out_pid);
	close(ends[1]);
	if (rc)
		rc = error_set(err, rc, "cannot watch triggers: %s", strerror(rc));
	else if (!await_note(ends[0]))
		rc = error_set(err, EIO,
			       "cannot watch triggers: the process that asks them did not start");
	close(ends[0]);
	return rc;
}

/* ---- checks before a program starts ---------------------------------------------------------- */

struct checked {
	const struct trigger_set *set;
	struct kymo_error *err; /* shared with the child */
	const char *directory;
};

/* The tables of kymo exist in every recording: that of a process without rows shows their
   columns. */
static int check_in_child(void *context)
{
	const struct checked *checked = context;
	struct kymo_error why = { 0 };
	int rc = kymo__enable_at(checked->directory, KYMO_ROLE_COMMAND, &why);

	for (size_t i = 0; !rc && i < checked->set->count; i++) {
		rc = condition_check(checked->directory, checked->set->triggers[i].sql, &why);
		if (rc)
			error_set(checked->err, -rc, "trigger %s: %s",
				  checked->set->triggers[i].name, why.text);
	}
	return rc ? 1 : 0;
}

int trigger_check_all(const struct trigger_set *set, struct kymo_error *err)
{
	struct checked checked = { .set = set };
	char directory[] = "/tmp/kymo-check-XXXXXX";
	char *argv[] = { "rm", "-rf", directory, NULL };
	pid_t child;
	int rc;

	checked.directory = mkdtemp(directory);
	checked.err = mmap(NULL, sizeof(*checked.err), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!checked.directory || checked.err == MAP_FAILED)
		return error_set(err, ENOMEM, "cannot check the triggers: %s", strerror(errno));
	rc = guard_run(check_in_child, &checked, err);
	if (rc > 0 && checked.err->text[0])
		rc = error_set(err, EINVAL, "%s", checked.err->text);
	else if (rc > 0)
		rc = 0; /* it could not be checked: the watcher will report it */
	if (!posix_spawnp(&child, "rm", NULL, NULL, argv, environ))
		waitpid(child, NULL, 0);
	munmap(checked.err, sizeof(*checked.err));
	return rc;
}
