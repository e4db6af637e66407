#include "cmds/run/run_xla.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/settings.h"
#include "cmds/cmds.h"
#include "cmds/guard/guard.h"
#include "collect/say.h"
#include "import/xla/xla_windows.h"

int run_xla_option(struct run_xla *xla, const char *word)
{
	struct settings_value value;

	xla->every = word && *word ? word : "on";
	/* the same words as those of --torch-ops */
	if (settings_parse(settings_find("torch_ops"), xla->every, &value, NULL) || !value.number)
		return cmds_wrong("run", "--xla takes all or a number of steps, not \"%s\"",
				  xla->every);
	return -1;
}

/* Beside the recording, where it may be large; else in memory. */
static int create_file(const char *recording)
{
	char folder[KYMO_PATH_BYTES];
	char *slash;
	int file;

	snprintf(folder, sizeof(folder), "%s", recording);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	file = open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return file >= 0 ? file : memfd_create("kymo-xla", MFD_CLOEXEC);
}

int run_xla_prepare(struct run_xla *xla, const char *recording, struct run_environment *environment,
		    int *hold)
{
	struct kymo_error err = { 0 };
	char path[64];
	int file;

	if (!xla->every)
		return -1;
	if (run_environment_inject(environment, &err))
		return cmds_fail("run", &err);
	file = create_file(recording);
	if (file < 0) {
		say("operations of XLA are not recorded: %s", strerror(errno));
		return -1;
	}
	*hold = xla->file = file;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
	run_environment_set(environment, "KYMO_XLA", xla->every);
	run_environment_set(environment, "KYMO_XLA_FILE", path);
	return -1;
}

struct ended_xla {
	const char *recording;
	int file;
};

/* In a child: the program wrote these bytes. */
static int add_windows_of(void *context)
{
	const struct ended_xla *ended = context;
	struct kymo_error err = { 0 };
	uint64_t zones;

	if (xla_windows_add(ended->recording, ended->file, &zones, &err))
		say("%s", err.text);
	return 0;
}

void run_xla_end(struct run_xla *xla, const char *recording)
{
	struct ended_xla ended = { recording, xla->file };
	struct kymo_error err = { 0 };

	if (!xla->file)
		return;
	if (guard_run(add_windows_of, &ended, &err) < 0)
		say("the operations of XLA are not in the recording: %s", err.text);
	close(xla->file);
	xla->file = 0;
}
