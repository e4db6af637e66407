#include "collect/move/run_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/program_name.h"
#include "collect/host/proc.h"

/* ---- the file `run` -------------------------------------------------------------------------- */

/* Words one after another, each ended by NUL, the last one by two. */
static void fill_argv(char *out, size_t out_bytes, char *const *argv)
{
	size_t used = 0;

	for (; *argv; argv++) {
		size_t length = strlen(*argv) + 1;

		if (length > out_bytes - 1 - used)
			length = out_bytes - 1 - used;
		if (!length)
			break;
		memcpy(out + used, *argv, length);
		used += length;
	}
	out[out_bytes - 2] = out[out_bytes - 1] = '\0';
}

static void fill_run(struct kymo_run_file *run, const struct collect_options *options)
{
	memset(run, 0, sizeof(*run));
	memcpy(run->file.magic, KYMO_MAGIC_RUN, sizeof(run->file.magic));
	run->file.version = KYMO_FORMAT_VERSION;
	run->file.head_bytes = sizeof(*run);
	run->clock_kind = clock_init();
	clock_take_pair(&run->epoch);
	run->supervised = 1;
	run->supervisor_pid = getpid();
	run->supervisor_starttime = paths_starttime(getpid());
	run->budget_memory_bytes = options->budget.memory_bytes;
	run->budget_disk_bytes = options->budget.disk_bytes;
	run->keep = options->keep;
	snprintf(run->name, sizeof(run->name), "%s", options->name ? options->name : "");
	snprintf(run->kymo_version, sizeof(run->kymo_version), "%s", KYMO_VERSION);
	gethostname(run->host, sizeof(run->host) - 1);
	proc_read("/proc/sys/kernel/random/boot_id", run->boot_id, sizeof(run->boot_id));
	run->boot_id[strcspn(run->boot_id, "\n")] = '\0';
	fill_argv(run->argv, sizeof(run->argv), options->argv);
	program_name(run->argv, sizeof(run->argv), run->program, sizeof(run->program));
	if (!getcwd(run->cwd, sizeof(run->cwd)))
		run->cwd[0] = '\0';
}

/* Readers may look at any time: they find the file whole, or not at all. */
static int run_dirs_write_run(int directory, const struct kymo_run_file *run, const char *peer)
{
	struct kymo_run_file copy = *run;
	int fd = openat(directory, ".run.part",
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t written;
	int rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(copy.peer, sizeof(copy.peer), "%s", peer);
	errno = ENOSPC; /* for a short write */
	written = write(fd, &copy, sizeof(copy));
	if (written != (ssize_t)sizeof(copy))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && renameat(directory, ".run.part", directory, "run"))
		rc = -errno;
	if (rc)
		unlinkat(directory, ".run.part", 0);
	return rc;
}

static int write_both(struct run_dirs *halves)
{
	int rc = run_dirs_write_run(halves->disk_fd, &halves->run, halves->live);
	int live_rc = run_dirs_write_run(halves->live_fd, &halves->run, halves->disk);

	return rc ? rc : live_rc;
}

void run_dirs_started(struct run_dirs *halves, pid_t pid, uint64_t starttime)
{
	halves->run.target_pid = pid;
	halves->run.target_starttime = starttime;
	write_both(halves);
}

void run_dirs_ended(struct run_dirs *halves, const int *wstatus, bool ran_on, uint64_t not_recorded)
{
	halves->run.ended = wstatus ? 1 : ran_on ? 3 : 2;
	halves->run.target_wstatus = wstatus ? *wstatus : 0;
	clock_take_pair(&halves->run.end);
	halves->run.ended_realtime_ns = halves->run.end.realtime_ns;
	halves->run.not_recorded = not_recorded < UINT32_MAX ? (uint32_t)not_recorded : UINT32_MAX;
	write_both(halves);
}

/* ---- making and removing --------------------------------------------------------------------- */

static int make_live(struct run_dirs *halves, struct kymo_error *err)
{
	char root[KYMO_PATH_BYTES - 256], made[KYMO_PATH_BYTES];
	char *absolute;
	int rc = paths_root(root, sizeof(root), err);

	if (!rc)
		rc = paths_make_run(root, halves->run.program, getpid(), made, sizeof(made), err);
	if (rc)
		return rc;
	/* The program may go to another directory before it looks there. */
	absolute = realpath(made, NULL);
	if (!absolute || strlen(absolute) >= sizeof(halves->live)) {
		free(absolute);
		rmdir(made);
		return error_set(err, ENAMETOOLONG,
				 "the path of the recording %s is too long; set KYMO_DIR", made);
	}
	strcpy(halves->live, absolute);
	free(absolute);
	halves->live_fd = open(halves->live, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (halves->live_fd < 0)
		return error_set(err, errno, "cannot open the recording %s: %s", halves->live,
				 strerror(errno));
	return 0;
}

static bool is_empty(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	bool empty = directory;

	while (empty && (entry = readdir(directory)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (directory)
		closedir(directory);
	return empty;
}

static void default_name(char *out, size_t out_bytes)
{
	time_t now = time(NULL);
	struct tm parts;
	char when[32];

	localtime_r(&now, &parts);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
	snprintf(out, out_bytes, "kymo-%s-%d", when, (int)getpid());
}

static int make_disk(struct run_dirs *halves, const char *wanted, struct kymo_error *err)
{
	char *absolute;

	if (!wanted)
		default_name(halves->shown, sizeof(halves->shown));
	else if (!*wanted || strlen(wanted) >= sizeof(halves->shown))
		return error_set(err, EINVAL, "the name of the recording is %s",
				 *wanted ? "too long" : "empty");
	else
		strcpy(halves->shown, wanted);
	halves->made_disk = !mkdir(halves->shown, 0700);
	if (!halves->made_disk && errno != EEXIST)
		return error_set(err, errno,
				 "cannot make the recording %s: %s; -o DIR puts it elsewhere",
				 halves->shown, strerror(errno));
	halves->disk_fd = open(halves->shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (halves->disk_fd < 0)
		return error_set(err, errno,
				 "cannot record into %s: %s; -o DIR names another place",
				 halves->shown, strerror(errno));
	if (!halves->made_disk && !is_empty(halves->shown))
		return error_set(err, EEXIST,
				 "%s is there already and not empty; remove it, or let --force "
				 "replace a recording",
				 halves->shown);
	absolute = realpath(halves->shown, NULL);
	if (!absolute || strlen(absolute) >= sizeof(halves->disk)) {
		free(absolute);
		return error_set(err, ENAMETOOLONG,
				 "the path of %s is too long; -o DIR names another place",
				 halves->shown);
	}
	strcpy(halves->disk, absolute);
	free(absolute);
	return 0;
}

int run_dirs_make(struct run_dirs *halves, const struct collect_options *options,
		  struct kymo_error *err)
{
	int rc;

	memset(halves, 0, sizeof(*halves));
	halves->live_fd = halves->disk_fd = -1;
	fill_run(&halves->run, options);
	rc = make_disk(halves, options->directory, err);
	if (!rc)
		rc = make_live(halves, err);
	if (rc)
		goto out;
	rc = write_both(halves);
	if (rc)
		error_set(err, -rc, "cannot write the recording %s or %s: %s", halves->shown,
			  halves->live, strerror(-rc));
out:
	if (rc)
		run_dirs_remove(halves);
	return rc;
}

static int open_half(const char *path, char *out, size_t out_bytes)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	snprintf(out, out_bytes, "%s", path);
	return fd;
}

int run_dirs_take_over(struct run_dirs *halves, const char *live, const char *disk,
		       struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES + 8];
	ssize_t got = -1;
	int fd, rc;

	memset(halves, 0, sizeof(*halves));
	halves->live_fd = open_half(live, halves->live, sizeof(halves->live));
	halves->disk_fd = open_half(disk, halves->disk, sizeof(halves->disk));
	snprintf(halves->shown, sizeof(halves->shown), "%s", disk);
	snprintf(path, sizeof(path), "%s/run", live);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		got = read(fd, &halves->run, sizeof(halves->run));
	if (fd >= 0)
		close(fd);
	if (halves->live_fd < 0 || halves->disk_fd < 0 || got != (ssize_t)sizeof(halves->run)) {
		run_dirs_close(halves);
		return error_set(err, EIO,
				 "the recording of it, in %s and %s, cannot be opened: %s", live,
				 disk, strerror(errno));
	}
	halves->run.supervisor_pid = getpid();
	halves->run.supervisor_starttime = paths_starttime(getpid());
	rc = write_both(halves);
	if (rc) {
		run_dirs_close(halves);
		error_set(err, -rc, "cannot write the recording %s or %s: %s", disk, live,
			  strerror(-rc));
	}
	return rc;
}

bool run_dirs_drop_live(struct run_dirs *halves)
{
	if (halves->live_fd < 0 || !halves->live[0])
		return true;
	unlinkat(halves->live_fd, ".run.part", 0);
	/* Only then: while a reader can find the live half, it can also find out which other half
	   belongs to it. */
	unlinkat(halves->live_fd, "run", 0);
	if (rmdir(halves->live)) {
		run_dirs_write_run(halves->live_fd, &halves->run, halves->disk);
		return false;
	}
	run_dirs_write_run(halves->disk_fd, &halves->run, "");
	return true;
}

void run_dirs_close(struct run_dirs *halves)
{
	if (halves->live_fd >= 0)
		close(halves->live_fd);
	if (halves->disk_fd >= 0)
		close(halves->disk_fd);
	halves->live_fd = halves->disk_fd = -1;
}

void run_dirs_remove(struct run_dirs *halves)
{
	run_dirs_drop_live(halves);
	if (halves->disk_fd >= 0 && (halves->made_disk || halves->disk[0])) {
		unlinkat(halves->disk_fd, ".run.part", 0);
		if (halves->run.supervised)
			unlinkat(halves->disk_fd, "run", 0);
	}
	if (halves->made_disk)
		rmdir(halves->shown);
	run_dirs_close(halves);
}
