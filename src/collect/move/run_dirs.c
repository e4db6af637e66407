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

#include "base/files/atomic_file.h"
#include "base/clock.h"
#include "base/files/paths.h"
#include "base/program_name.h"
#include "collect/host/proc.h"

/* ---- the file `run` -------------------------------------------------------------------------- */

/* NUL-terminated words, followed by another NUL. */
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

/* Written to a temporary file and renamed, because readers may open it at any time. */
static int run_dirs_write_run(int directory, const struct kymo_run_file *run, const char *peer)
{
	struct kymo_run_file copy = *run;

	snprintf(copy.peer, sizeof(copy.peer), "%s", peer);
	return atomic_file_put(directory, "run", &copy, sizeof(copy));
}

static int write_both(struct run_dirs *dirs)
{
	int rc = run_dirs_write_run(dirs->disk_fd, &dirs->run, dirs->live);
	int live_rc = run_dirs_write_run(dirs->live_fd, &dirs->run, dirs->disk);

	return rc ? rc : live_rc;
}

void run_dirs_started(struct run_dirs *dirs, pid_t pid, uint64_t starttime)
{
	dirs->run.target_pid = pid;
	dirs->run.target_starttime = starttime;
	write_both(dirs);
}

void run_dirs_ended(struct run_dirs *dirs, const int *wstatus, bool ran_on, uint64_t not_recorded)
{
	dirs->run.ended = wstatus ? 1 : ran_on ? 3 : 2;
	dirs->run.target_wstatus = wstatus ? *wstatus : 0;
	clock_take_pair(&dirs->run.end);
	dirs->run.ended_realtime_ns = dirs->run.end.realtime_ns;
	dirs->run.not_recorded = not_recorded < UINT32_MAX ? (uint32_t)not_recorded : UINT32_MAX;
	write_both(dirs);
}

/* ---- making and removing --------------------------------------------------------------------- */

static int make_live(struct run_dirs *dirs, struct kymo_error *err)
{
	char root[KYMO_PATH_BYTES - 256], made[KYMO_PATH_BYTES];
	char *absolute;
	int rc = paths_root(root, sizeof(root), err);

	if (!rc)
		rc = paths_make_run(root, dirs->run.program, getpid(), made, sizeof(made), err);
	if (rc)
		return rc;
	/* The program may change its working directory before it opens this path. */
	absolute = realpath(made, NULL);
	if (!absolute || strlen(absolute) >= sizeof(dirs->live)) {
		free(absolute);
		rmdir(made);
		return error_set(
			err, ENAMETOOLONG,
			"the path of the recording %s is too long; set KYMO_DIR to a shorter one",
			made);
	}
	strcpy(dirs->live, absolute);
	free(absolute);
	dirs->live_fd = open(dirs->live, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dirs->live_fd < 0)
		return error_set(err, errno, "cannot open the recording %s: %s", dirs->live,
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

static int make_disk(struct run_dirs *dirs, const char *wanted, struct kymo_error *err)
{
	char *absolute;

	if (!wanted)
		default_name(dirs->shown, sizeof(dirs->shown));
	else if (!*wanted || strlen(wanted) >= sizeof(dirs->shown))
		return error_set(err, EINVAL, "the name of the recording is %s",
				 *wanted ? "too long" : "empty");
	else
		strcpy(dirs->shown, wanted);
	dirs->made_disk = !mkdir(dirs->shown, 0700);
	if (!dirs->made_disk && errno != EEXIST)
		return error_set(err, errno,
				 "cannot create the recording %s: %s; use -o DIR for another place",
				 dirs->shown, strerror(errno));
	dirs->disk_fd = open(dirs->shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirs->disk_fd < 0)
		return error_set(err, errno,
				 "cannot record into %s: %s; use -o DIR for another place",
				 dirs->shown, strerror(errno));
	if (!dirs->made_disk && !is_empty(dirs->shown))
		return error_set(err, EEXIST,
				 "%s exists and is not empty; remove it, or use --force to replace "
				 "a recording",
				 dirs->shown);
	absolute = realpath(dirs->shown, NULL);
	if (!absolute || strlen(absolute) >= sizeof(dirs->disk)) {
		free(absolute);
		return error_set(err, ENAMETOOLONG,
				 "the path of %s is too long; use -o DIR for another place",
				 dirs->shown);
	}
	strcpy(dirs->disk, absolute);
	free(absolute);
	return 0;
}

int run_dirs_make(struct run_dirs *dirs, const struct collect_options *options,
		  struct kymo_error *err)
{
	int rc;

	memset(dirs, 0, sizeof(*dirs));
	dirs->live_fd = dirs->disk_fd = -1;
	fill_run(&dirs->run, options);
	rc = make_disk(dirs, options->directory, err);
	if (!rc)
		rc = make_live(dirs, err);
	if (rc)
		goto out;
	rc = write_both(dirs);
	if (rc)
		error_set(err, -rc, "cannot write the recording %s or %s: %s", dirs->shown,
			  dirs->live, strerror(-rc));
out:
	if (rc)
		run_dirs_remove(dirs);
	return rc;
}

static int run_dirs_open(const char *path, char *out, size_t out_bytes)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	snprintf(out, out_bytes, "%s", path);
	return fd;
}

int run_dirs_take_over(struct run_dirs *dirs, const char *live, const char *disk,
		       struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES + 8];
	ssize_t got = -1;
	int fd, rc;

	memset(dirs, 0, sizeof(*dirs));
	dirs->live_fd = run_dirs_open(live, dirs->live, sizeof(dirs->live));
	dirs->disk_fd = run_dirs_open(disk, dirs->disk, sizeof(dirs->disk));
	snprintf(dirs->shown, sizeof(dirs->shown), "%s", disk);
	snprintf(path, sizeof(path), "%s/run", live);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		got = read(fd, &dirs->run, sizeof(dirs->run));
	if (fd >= 0)
		close(fd);
	if (dirs->live_fd < 0 || dirs->disk_fd < 0 || got != (ssize_t)sizeof(dirs->run)) {
		run_dirs_close(dirs);
		return error_set(err, EIO, "cannot open the recording in %s and %s: %s", live, disk,
				 strerror(errno));
	}
	dirs->run.supervisor_pid = getpid();
	dirs->run.supervisor_starttime = paths_starttime(getpid());
	rc = write_both(dirs);
	if (rc) {
		run_dirs_close(dirs);
		error_set(err, -rc, "cannot write the recording %s or %s: %s", disk, live,
			  strerror(-rc));
	}
	return rc;
}

bool run_dirs_drop_live(struct run_dirs *dirs)
{
	if (dirs->live_fd < 0 || !dirs->live[0])
		return true;
	unlinkat(dirs->live_fd, ".run.part", 0);
	/* Removed last: a reader that finds the live directory needs this file to find the disk
	   directory. */
	unlinkat(dirs->live_fd, "run", 0);
	if (rmdir(dirs->live)) {
		run_dirs_write_run(dirs->live_fd, &dirs->run, dirs->disk);
		return false;
	}
	run_dirs_write_run(dirs->disk_fd, &dirs->run, "");
	return true;
}

void run_dirs_close(struct run_dirs *dirs)
{
	if (dirs->live_fd >= 0)
		close(dirs->live_fd);
	if (dirs->disk_fd >= 0)
		close(dirs->disk_fd);
	dirs->live_fd = dirs->disk_fd = -1;
}

void run_dirs_remove(struct run_dirs *dirs)
{
	run_dirs_drop_live(dirs);
	if (dirs->disk_fd >= 0 && (dirs->made_disk || dirs->disk[0])) {
		unlinkat(dirs->disk_fd, ".run.part", 0);
		if (dirs->run.supervised)
			unlinkat(dirs->disk_fd, "run", 0);
	}
	if (dirs->made_disk)
		rmdir(dirs->shown);
	run_dirs_close(dirs);
}
