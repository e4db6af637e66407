#include "collect/move/run_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/atomic_file.h"
#include "base/clock.h"
#include "base/files/dir_names.h"
#include "base/files/paths.h"
#include "base/program_name.h"
#include "collect/host/proc.h"
#include "collect/say.h"

#define BESIDE_MOST 10000 /* names that are tried */

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
	snprintf(run->job, sizeof(run->job), "%s", options->job ? options->job : "");
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
static int run_dirs_write_run(int directory, const struct kymo_run_file *run, const char *peer,
			      uint32_t half)
{
	struct kymo_run_file copy = *run;

	copy.half = half;
	snprintf(copy.peer, sizeof(copy.peer), "%s", peer);
	return atomic_file_put(directory, "run", &copy, sizeof(copy));
}

static int write_both(struct run_dirs *dirs)
{
	int rc = run_dirs_write_run(dirs->disk_fd, &dirs->run, dirs->complete ? "" : dirs->live,
				    KYMO_HALF_DISK);
	int live_rc = run_dirs_write_run(dirs->live_fd, &dirs->run, dirs->disk, KYMO_HALF_LIVE);

	return rc ? rc : live_rc;
}

void run_dirs_write(struct run_dirs *dirs)
{
	write_both(dirs);
}

/* In place: replacing the file makes ext4 write it to the disk, and the caller waits for that. */
static void write_target(int directory, const struct kymo_run_file *run)
{
	int fd = openat(directory, "run", O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	/* The pid comes last: readers use the start time only with it. */
	bool done = fd >= 0 &&
		    pwrite(fd, &run->target_starttime, sizeof(run->target_starttime),
			   offsetof(struct kymo_run_file, target_starttime)) ==
			    (ssize_t)sizeof(run->target_starttime) &&
		    pwrite(fd, &run->target_pid, sizeof(run->target_pid),
			   offsetof(struct kymo_run_file, target_pid)) > 0;

	(void)done; /* a reader then finds no pid until the end */
	if (fd >= 0)
		close(fd);
}

void run_dirs_started(struct run_dirs *dirs, pid_t pid, uint64_t starttime)
{
	dirs->run.target_pid = pid;
	dirs->run.target_starttime = starttime;
	write_target(dirs->disk_fd, &dirs->run);
	write_target(dirs->live_fd, &dirs->run);
}

void run_dirs_note_end(struct run_dirs *dirs)
{
	clock_take_pair(&dirs->run.end);
}

void run_dirs_ended(struct run_dirs *dirs, const int *wstatus, bool ran_on, uint64_t not_recorded,
		    bool complete)
{
	dirs->run.ended = wstatus ? 1 : ran_on ? 3 : 2;
	dirs->run.target_wstatus = wstatus ? *wstatus : 0;
	if (!dirs->run.end.ticks)
		run_dirs_note_end(dirs);
	dirs->run.ended_realtime_ns = dirs->run.end.realtime_ns;
	dirs->run.not_recorded = not_recorded < UINT32_MAX ? (uint32_t)not_recorded : UINT32_MAX;
	dirs->complete = complete;
	write_both(dirs);
}

/* ---- making and removing --------------------------------------------------------------------- */

static int make_live_in(struct run_dirs *dirs, const struct safe_dir *root, struct kymo_error *err)
{
	int rc = paths_make_run_at(root, dirs->run.program, getpid(), dirs->live,
				   sizeof(dirs->live) - 256, err);

	if (rc) {
		dirs->live[0] = '\0';
		return rc;
	}
	dirs->live_fd = safe_dir_enter(root->fd, strrchr(dirs->live, '/') + 1);
	if (dirs->live_fd < 0)
		return error_set(err, -dirs->live_fd, "cannot open the recording %s: %s",
				 dirs->live, strerror(-dirs->live_fd));
	return 0;
}

static int make_live(struct run_dirs *dirs, struct kymo_error *err)
{
	struct safe_dir root;
	int rc = paths_root_open(&root, err);

	if (!rc)
		rc = make_live_in(dirs, &root, err);
	safe_dir_close(&root);
	return rc;
}

static int is_another_name(const char *name, void *context)
{
	(void)context;
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool is_empty(int directory)
{
	int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool empty = own >= 0 && !dir_names_each(own, is_another_name, NULL);

	if (own >= 0)
		close(own);
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

static int cannot_make(const struct run_dirs *dirs, int rc, const struct kymo_error *why,
		       struct kymo_error *err)
{
	return error_set(err, -rc,
			 "cannot create the recording %s: %s; use -o DIR for another place",
			 dirs->shown, safe_dir_reason(rc, why));
}

/* Two that find a directory empty at once, or one that has made it and one that finds it: one of
   them makes the file. */
static bool claim_directory(int directory)
{
	int fd = openat(directory, "run", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* One that exists: "." or a directory that the user has prepared, also by a link of the user. */
static int open_existing_disk(struct run_dirs *dirs, struct safe_dir *disk, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct stat st;
	int rc = safe_dir_open(disk, dirs->shown, 0, &why);

	if (!rc && fstat(disk->fd, &st))
		rc = -errno;
	if (rc)
		return error_set(err, -rc,
				 "cannot record into %s: %s; use -o DIR for another place",
				 dirs->shown, safe_dir_reason(rc, &why));
	if (st.st_uid != geteuid() || (st.st_mode & 002))
		return error_set(err, EPERM,
				 "cannot record into %s: it %s; use -o %s/NAME for a directory of "
				 "your own in it",
				 dirs->shown,
				 st.st_uid != geteuid() ? "belongs to another user"
							: "is writable by everyone",
				 dirs->shown);
	dirs->disk_fd = disk->fd;
	disk->fd = -1;
	strcpy(dirs->disk, disk->path);
	if (!is_empty(dirs->disk_fd) || !claim_directory(dirs->disk_fd))
		return error_set(err, EEXIST,
				 "%s exists and is not empty; remove it, or use --force to replace "
				 "a recording",
				 dirs->shown);
	return 0;
}

static int make_disk_in(struct run_dirs *dirs, struct kymo_error *err)
{
	const struct safe_dir *parent = &dirs->parent;
	int length;

	length = snprintf(dirs->disk, sizeof(dirs->disk), "%s/%s",
			  parent->path[1] ? parent->path : "", parent->name);
	if (length < 0 || (size_t)length >= sizeof(dirs->disk))
		return error_set(err, ENAMETOOLONG,
				 "the path of %s is too long; use -o DIR for another place",
				 dirs->shown);
	dirs->disk_fd = safe_dir_enter(parent->fd, parent->name);
	if (dirs->disk_fd < 0)
		return error_set(err, -dirs->disk_fd,
				 "cannot record into %s: %s; use -o DIR for another place",
				 dirs->shown, strerror(-dirs->disk_fd));
	if (claim_directory(dirs->disk_fd))
		return 0;
	if (errno != EEXIST)
		return error_set(err, errno,
				 "cannot record into %s: %s; use -o DIR for another place",
				 dirs->shown, strerror(errno));
	dirs->made_disk = false; /* another one has it now */
	return error_set(err, EEXIST, "%s is taken by another recording", dirs->shown);
}

/* The state directory, where the working directory is another user's. */
static int use_state_directory(struct run_dirs *dirs, const struct kymo_error *why,
			       struct kymo_error *err)
{
	char name[64], state[KYMO_PATH_BYTES - 64];
	int rc = paths_state(state, sizeof(state), err);

	if (rc)
		return rc;
	default_name(name, sizeof(name));
	snprintf(dirs->shown, sizeof(dirs->shown), "%s/%s", state, name);
	rc = safe_dir_parent(&dirs->parent, dirs->shown, 0, err);
	if (!rc)
		say("the recording is %s: %s", dirs->shown, why->text);
	return rc;
}

static int make_disk(struct run_dirs *dirs, const char *wanted, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	struct safe_dir disk = SAFE_DIR_NONE;
	int rc;

	if (!wanted)
		default_name(dirs->shown, sizeof(dirs->shown));
	else if (!*wanted || strlen(wanted) >= sizeof(dirs->shown))
		return error_set(err, EINVAL, "the name of the recording is %s",
				 *wanted ? "too long" : "empty");
	else
		strcpy(dirs->shown, wanted);
	rc = safe_dir_parent(&dirs->parent, dirs->shown, 0, &why);
	if (rc == -EPERM && !wanted)
		rc = use_state_directory(dirs, &why, &why);
	if (rc && rc != -EINVAL)
		return cannot_make(dirs, rc, &why, err);
	dirs->made_disk = !rc && !mkdirat(dirs->parent.fd, dirs->parent.name, 0700);
	if (dirs->made_disk)
		return make_disk_in(dirs, err);
	if (!rc && errno != EEXIST)
		return cannot_make(dirs, -errno, &why, err);
	rc = open_existing_disk(dirs, &disk, err);
	safe_dir_close(&disk);
	return rc;
}

static void close_disk(struct run_dirs *dirs)
{
	if (dirs->disk_fd >= 0)
		close(dirs->disk_fd);
	safe_dir_close(&dirs->parent);
	dirs->disk_fd = dirs->parent.fd = -1;
	dirs->disk[0] = '\0';
	dirs->made_disk = false;
}

/* DIR-rank3, then DIR-2, DIR-3, …: several ranks may have been given one directory. */
static int make_disk_beside(struct run_dirs *dirs, const char *wanted, int rank,
			    struct kymo_error *err)
{
	size_t bytes = strlen(wanted);
	int rc = -EEXIST;

	while (bytes > 1 && wanted[bytes - 1] == '/')
		bytes--;
	for (int i = rank >= 0 ? 1 : 2; rc == -EEXIST && i < BESIDE_MOST; i++) {
		char name[KYMO_PATH_BYTES + 32];

		if (i == 1)
			snprintf(name, sizeof(name), "%.*s-rank%d", (int)bytes, wanted, rank);
		else
			snprintf(name, sizeof(name), "%.*s-%d", (int)bytes, wanted, i);
		close_disk(dirs);
		rc = make_disk(dirs, name, err);
	}
	return rc;
}

/* Where the wanted directory cannot be made: the state directory. */
static int make_disk_in_state(struct run_dirs *dirs, struct kymo_error *err)
{
	char name[64], state[KYMO_PATH_BYTES - 64], path[KYMO_PATH_BYTES];
	int rc = paths_state(state, sizeof(state), err);

	if (rc)
		return rc;
	default_name(name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", state, name);
	close_disk(dirs);
	rc = make_disk(dirs, path, err);
	return rc == -EEXIST ? make_disk_beside(dirs, path, -1, err) : rc;
}

/* Without the advice at its end, which is followed here. */
static size_t reason_bytes(const char *text)
{
	const char *advice = strstr(text, "; use -o ");

	return advice ? (size_t)(advice - text) : strlen(text);
}

static int make_disk_somewhere(struct run_dirs *dirs, const struct collect_options *options,
			       struct kymo_error *err)
{
	struct kymo_error why = { 0 }, last = { 0 };
	char first[KYMO_PATH_BYTES];
	int rc = make_disk(dirs, options->directory, &why);

	if (!rc || !options->elsewhere) {
		if (rc && err)
			*err = why;
		return rc;
	}
	snprintf(first, sizeof(first), "%s", dirs->shown);
	if (rc == -EEXIST)
		rc = make_disk_beside(dirs, first, options->rank, &last);
	if (!rc && options->directory)
		say("%s is not empty; the recording is %s", first, dirs->shown);
	if (!rc)
		return 0;
	rc = make_disk_in_state(dirs, &last);
	if (!rc)
		say("%.*s; the recording is %s", (int)reason_bytes(why.text), why.text,
		    dirs->shown);
	else if (err)
		*err = why;
	return rc;
}

int run_dirs_make(struct run_dirs *dirs, const struct collect_options *options,
		  struct kymo_error *err)
{
	int rc;

	memset(dirs, 0, sizeof(*dirs));
	dirs->live_fd = dirs->disk_fd = dirs->parent.fd = -1;
	fill_run(&dirs->run, options);
	rc = make_disk_somewhere(dirs, options, err);
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

/* Both were made by a kymo of this user. */
static int run_dirs_open(struct safe_dir *parent, const char *path, char *out, size_t out_bytes,
			 struct kymo_error *err)
{
	int fd = safe_dir_parent(parent, path, 0, err);

	if (fd)
		return fd;
	snprintf(out, out_bytes, "%s", path);
	fd = safe_dir_enter(parent->fd, parent->name);
	return fd >= 0 ? fd : error_set(err, -fd, "cannot open %s: %s", path, strerror(-fd));
}

static int take_over_both(struct run_dirs *dirs, const char *live, const char *disk,
			  struct kymo_error *err)
{
	struct safe_dir live_parent;
	ssize_t got = -1;
	int fd;

	dirs->live_fd = run_dirs_open(&live_parent, live, dirs->live, sizeof(dirs->live), err);
	safe_dir_close(&live_parent);
	if (dirs->live_fd < 0)
		return dirs->live_fd;
	dirs->disk_fd = run_dirs_open(&dirs->parent, disk, dirs->disk, sizeof(dirs->disk), err);
	if (dirs->disk_fd < 0)
		return dirs->disk_fd;
	snprintf(dirs->shown, sizeof(dirs->shown), "%s", disk);
	fd = openat(dirs->live_fd, "run", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		got = read(fd, &dirs->run, sizeof(dirs->run));
	if (fd >= 0)
		close(fd);
	return got == (ssize_t)sizeof(dirs->run)
		       ? 0
		       : error_set(err, EIO, "cannot read %s/run: %s", live, strerror(errno));
}

int run_dirs_take_over(struct run_dirs *dirs, const char *live, const char *disk,
		       struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	int rc;

	memset(dirs, 0, sizeof(*dirs));
	dirs->live_fd = dirs->disk_fd = dirs->parent.fd = -1;
	rc = take_over_both(dirs, live, disk, &why);
	if (rc) {
		run_dirs_close(dirs);
		return error_set(err, -rc, "cannot open the recording in %s and %s: %s", live, disk,
				 why.text);
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

/* By the name in its parent, if that is still the directory that was opened. */
static bool remove_opened(int parent, const char *name, int opened)
{
	int fd = safe_dir_enter(parent, name);
	bool same = fd >= 0 && safe_dir_same(fd, opened);

	if (fd >= 0)
		close(fd);
	return same && !unlinkat(parent, name, AT_REMOVEDIR);
}

static bool remove_live_directory(const struct run_dirs *dirs)
{
	struct safe_dir parent;
	bool removed = !safe_dir_parent(&parent, dirs->live, 0, NULL) &&
		       remove_opened(parent.fd, parent.name, dirs->live_fd);

	safe_dir_close(&parent);
	return removed;
}

bool run_dirs_drop_live(struct run_dirs *dirs)
{
	if (dirs->live_fd < 0 || !dirs->live[0])
		return true;
	unlinkat(dirs->live_fd, ".run.part", 0);
	/* Removed last: a reader that finds the live directory needs this file to find the disk
	   directory. */
	unlinkat(dirs->live_fd, "run", 0);
	if (!remove_live_directory(dirs)) {
		dirs->complete = false;
		write_both(dirs);
		return false;
	}
	if (!dirs->complete)
		run_dirs_write_run(dirs->disk_fd, &dirs->run, "", KYMO_HALF_DISK);
	return true;
}

void run_dirs_close(struct run_dirs *dirs)
{
	if (dirs->live_fd >= 0)
		close(dirs->live_fd);
	if (dirs->disk_fd >= 0)
		close(dirs->disk_fd);
	safe_dir_close(&dirs->parent);
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
		remove_opened(dirs->parent.fd, dirs->parent.name, dirs->disk_fd);
	run_dirs_close(dirs);
}
