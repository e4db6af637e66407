#include "base/grow.h"
#include "collect/move/archive_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/safe_path.h"
#include "base/format.h"
#include "collect/move/copy.h"
#include "collect/move/guard.h"
#include "collect/host/proc.h"
#include "collect/say.h"
#include "collect/move/spare_segments.h"

#define IDLE_MS 100
#define LONG_IDLE_MS 250 /* after IDLE_PASSES, if so much cannot fill the memory */
#define IDLE_PASSES 10
#define LONG_IDLE_BYTES (256ull << 20)
#define BUSY_MS 10
#define COARSE_NS 100000000 /* times of files are at most this coarse */
#define RETRY_NS 1000000000ull /* after the disk was full */
#define SCAN_NS 1000000000ull /* period of a scan, independent of held_bytes */
#define CLAIMS_MOST 4096 /* for one stream in one pass: its header is not trusted */

void archive_init(struct archive *archive, int live_fd, int disk_fd, const struct budget *budget)
{
	memset(archive, 0, sizeof(*archive));
	archive->live_fd = live_fd;
	archive->disk_fd = disk_fd;
	archive->budget = *budget;
	archive->self = getpid();
	archive->clock = clock_monotonic_ns;
}

void archive_drop_process(struct archive *archive, size_t index)
{
	if (archive->processes[index].control_fd >= 0)
		close(archive->processes[index].control_fd);
	archive->processes[index] = archive->processes[--archive->process_count];
}

void archive_fini(struct archive *archive)
{
	while (archive->process_count)
		archive_drop_process(archive, archive->process_count - 1);
	free(archive->processes);
	free(archive->queue);
	memset(archive, 0, sizeof(*archive));
}

/* ---- small tools ----------------------------------------------------------------------------- */

int archive_open_directory(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int archive_open_on_disk(const struct archive *archive, const char *name)
{
	if (mkdirat(archive->disk_fd, name, 0700) && errno != EEXIST)
		return -errno;
	return safe_dir_enter(archive->disk_fd, name);
}

bool archive_read_exactly(int fd, void *out, size_t bytes, uint64_t at)
{
	return pread(fd, out, bytes, (off_t)at) == (ssize_t)bytes;
}

int archive_for_each_name(int directory_fd, int (*each)(const char *name, void *context),
			  void *context)
{
	int own = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = own < 0 ? NULL : fdopendir(own);
	struct dirent *entry;
	int rc = 0;

	if (!directory) {
		rc = -errno;
		if (own >= 0)
			close(own);
		return rc;
	}
	while (!rc && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			rc = each(entry->d_name, context);
	closedir(directory);
	return rc;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* "p<pid>-<starttime>", followed by ".<life>" after an exec. */
static bool parse_process_name(const char *name, struct archive_process *out)
{
	unsigned long long starttime;
	int pid, end = 0;

	if (strlen(name) >= sizeof(out->name) ||
	    sscanf(name, "p%d-%llu%n", &pid, &starttime, &end) != 2 || pid <= 0)
		return false;
	if (name[end] && name[end] != '.')
		return false;
	memset(out, 0, sizeof(*out));
	strcpy(out->name, name);
	out->pid = pid;
	out->starttime = starttime;
	out->control_fd = -1;
	return true;
}

unsigned long archive_life_of(const struct archive_process *process)
{
	const char *dot = strchr(process->name, '.');

	return dot ? strtoul(dot + 1, NULL, 10) : 1;
}

static bool archive_is_known(const struct archive *archive, const char *name)
{
	for (size_t i = 0; i < archive->process_count; i++)
		if (!strcmp(archive->processes[i].name, name))
			return true;
	return false;
}

int archive_notice(const char *name, void *context)
{
	struct archive *archive = context;
	struct archive_process process;

	if (!parse_process_name(name, &process) || archive_is_known(archive, name))
		return 0;
	if (!grow((void **)&archive->processes, &archive->process_room, archive->process_count,
		  sizeof(*archive->processes)))
		return -ENOMEM;
	archive->processes[archive->process_count++] = process;
	if (process.pid != archive->self)
		archive->recorded_processes++;
	return 0;
}

static uint64_t own_pid_namespace(void)
{
	static uint64_t inode;
	struct stat st;

	if (!inode && !stat("/proc/self/ns/pid", &st))
		inode = (uint64_t)st.st_ino;
	return inode;
}

bool archive_open_control(const struct archive *archive, struct archive_process *process)
{
	char path[ARCHIVE_NAME_BYTES + 16];
	uint64_t ns = 0;

	if (process->control_fd >= 0)
		return true;
	snprintf(path, sizeof(path), "%s/control", process->name);
	process->control_fd = openat(archive->live_fd, path,
				     O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (process->control_fd < 0)
		return false;
	if (archive_read_exactly(process->control_fd, &ns, sizeof(ns),
				 offsetof(struct kymo_control, pid_namespace)))
		process->foreign = ns && ns != own_pid_namespace();
	return true;
}

bool archive_is_collector(const struct archive *archive, struct archive_process *process)
{
	uint32_t role = 0;

	if (process->pid == archive->self)
		return true;
	return archive_open_control(archive, process) &&
	       archive_read_exactly(process->control_fd, &role, sizeof(role),
				    offsetof(struct kymo_control, role)) &&
	       role != KYMO_ROLE_TARGET;
}

bool archive_has_program(struct archive *archive)
{
	for (size_t i = 0; i < archive->process_count; i++)
		if (!archive_is_collector(archive, &archive->processes[i]))
			return true;
	return false;
}

bool archive_process_alive(const struct archive_process *process)
{
	if (process->foreign)
		return proc_alive_elsewhere(process->pid, process->starttime);
	return proc_alive(process->pid, process->starttime);
}

/* ---- sealed segments ------------------------------------------------------------------------- */

/* One scan of the streams of a process. */
struct scan {
	struct archive *archive;
	struct archive_process *process;
	int live_fd, disk_fd; /* its two directories; disk_fd is opened on demand */
	uint64_t moved_bytes;
	uint64_t largest_bytes; /* of the segments that were moved */
	unsigned moved_segments;
};

static void remove_from_live(struct scan *scan, const char *name)
{
	struct stat st;
	uint64_t bytes = fstatat(scan->live_fd, name, &st, AT_SYMLINK_NOFOLLOW)
				 ? 0
				 : (uint64_t)st.st_size;

	if (unlinkat(scan->live_fd, name, 0))
		return;
	guard_add(scan->process->control_fd, offsetof(struct kymo_control, moved_bytes), bytes);
	scan->moved_bytes += bytes;
	scan->moved_segments++;
	if (bytes > scan->largest_bytes)
		scan->largest_bytes = bytes;
}

/* See archive.h for the order. 0: moved; 1: the process has dropped the segment; a negative errno
   of the disk or the header. */
static int move_segment(struct scan *scan, int head_fd, uint32_t id, uint64_t sequence)
{
	char name[64];
	uint64_t bytes = 0;
	int rc, claimed;

	snprintf(name, sizeof(name), "s%u.%" PRIu64, id, sequence);
	rc = copy_file(scan->live_fd, scan->disk_fd, name, COPY_WHOLE, &bytes);
	if (rc && rc != -ENOENT)
		return rc;
	/* Claimed even if the file is missing: otherwise a chain with a hole would never
	   advance. */
	claimed = guard_swap(head_fd, LIVE_WORD(segment_first), sequence, sequence + 1);
	if (claimed == 1 && !rc) {
		remove_from_live(scan, name);
		archive_account(scan->archive, scan->process->name, id, sequence, bytes,
				archive_rule(scan->archive, head_fd));
		return 0;
	}
	if (claimed < 0)
		scan->process->broken =
			/* our copy stays: it is complete, and readers identify it by its number */
			true;
	else if (!rc)
		unlinkat(scan->disk_fd, name, 0);
	return claimed < 0 ? 0 : claimed == 0;
}

static int drain_stream(struct scan *scan, int head_fd, uint32_t id)
{
	uint64_t range[2]; /* segment_first, segment_next */
	int rc = 0;

	_Static_assert(offsetof(struct kymo_stream_live, segment_next) ==
			       offsetof(struct kymo_stream_live, segment_first) + 8,
		       "they are read together");
	if (!archive_read_exactly(head_fd, range, sizeof(range), LIVE_WORD(segment_first)))
		return 0;
	/* The last segment is being written. */
	for (int i = 0; i < CLAIMS_MOST && range[0] < range[1] && range[1] - range[0] > 1; i++) {
		if (scan->disk_fd < 0)
			scan->disk_fd = archive_open_on_disk(scan->archive, scan->process->name);
		if (scan->disk_fd < 0)
			return scan->disk_fd;
		rc = move_segment(scan, head_fd, id, range[0]);
		if (rc < 0 || scan->process->broken)
			return rc;
		/* The process dropped this segment, and possibly later ones. */
		if (rc == 0)
			range[0]++;
		else if (!archive_read_exactly(head_fd, range, sizeof(range),
					       LIVE_WORD(segment_first)))
			break;
	}
	return 0;
}

bool archive_parse_head_name(const char *name, uint32_t *out_id)
{
	int end = 0;

	return sscanf(name, "s%u.head%n", out_id, &end) == 1 && end && !name[end];
}

static int scan_stream(const char *name, void *context)
{
	struct scan *scan = context;
	uint32_t id;
	int head_fd, rc;

	if (!archive_parse_head_name(name, &id))
		return 0;
	head_fd = openat(scan->live_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (head_fd < 0)
		return 0;
	rc = drain_stream(scan, head_fd, id);
	close(head_fd);
	return scan->process->broken ? 1 : rc;
}

void archive_disk_failed(struct archive *archive, int error)
{
	archive->last_error = error;
	archive->retry_ns = clock_monotonic_ns() + RETRY_NS;
	if (!archive->reported_full)
		say("cannot move rows to the recording on disk: %s; they stay in memory within its "
		    "budget, then the oldest are dropped",
		    strerror(-error));
	archive->reported_full = true;
}

/* The bytes that a process holds in memory; false: unknown. */
static bool read_held(const struct archive_process *process, uint64_t *out_held, uint64_t *out_left)
{
	uint64_t words[2]; /* moved_bytes, held_bytes */

	_Static_assert(offsetof(struct kymo_control, held_bytes) ==
			       offsetof(struct kymo_control, moved_bytes) + 8,
		       "they are read together");
	if (!archive_read_exactly(process->control_fd, words, sizeof(words),
				  offsetof(struct kymo_control, moved_bytes)))
		return false;
	*out_held = words[1];
	*out_left = words[1] > words[0] ? words[1] - words[0] : 0;
	return true;
}

/* For a process that seals segments of the same size in consecutive passes: provides as many as it
   may fill until the next pass. True: it has used some of them. */
static bool keep_spare_segments(const struct scan *scan, uint64_t most_bytes)
{
	struct archive_process *process = scan->process;
	bool steady = scan->largest_bytes && scan->largest_bytes == process->segment_bytes;
	unsigned count = scan->moved_segments < KYMO_SPARES_MOST ? scan->moved_segments + 1
								 : KYMO_SPARES_MOST;

	if (scan->largest_bytes)
		process->segment_bytes = scan->largest_bytes;
	if (!steady || process->pid == scan->archive->self ||
	    scan->largest_bytes > most_bytes / count)
		return false;
	return spare_segments_keep(scan->live_fd, process->control_fd, scan->largest_bytes, count) >
	       0;
}

/* Returns whether more segments are expected soon. */
static bool scan_process(struct archive *archive, struct archive_process *process,
			 uint64_t spare_bytes, uint64_t *out_moved)
{
	struct scan scan = { .archive = archive, .process = process, .disk_fd = -1 };
	bool busy;
	int rc;

	*out_moved = 0;
	scan.live_fd = archive_open_directory(archive->live_fd, process->name);
	if (scan.live_fd < 0)
		return false;
	process->scanned_ns = clock_monotonic_ns();
	rc = archive_for_each_name(scan.live_fd, scan_stream, &scan);
	if (rc < 0)
		archive_disk_failed(archive, rc);
	busy = keep_spare_segments(&scan, spare_bytes);
	if (scan.disk_fd >= 0)
		close(scan.disk_fd);
	close(scan.live_fd);
	*out_moved = scan.moved_bytes;
	return busy;
}

/* The memory limit of a process, computed as in libkymo. */
static uint64_t memory_limit(const struct archive *archive)
{
	struct statvfs fs;
	uint64_t limit = archive->budget.memory_bytes;

	if (!fstatvfs(archive->live_fd, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize / 8 < limit)
		limit = (uint64_t)fs.f_bavail * fs.f_frsize / 8;
	return limit;
}

/* held_bytes grows with every new segment, and so with every sealed one. A process at its limit
   drops as much as it allocates, so held_bytes is then no indication. True: more segments are
   expected soon. */
static bool pass_process(struct archive *archive, struct archive_process *process, uint64_t limit)
{
	uint64_t held, left, moved;
	bool due = clock_monotonic_ns() - process->scanned_ns >= SCAN_NS;
	bool busy;

	if (process->broken || !archive_open_control(archive, process) ||
	    !read_held(process, &held, &left))
		return false;
	if (held == process->held_bytes && left < limit / 4 && !due)
		return false;
	if (held != process->scanned_bytes)
		archive->idle = 0;
	busy = scan_process(archive, process, left < limit / 4 ? limit / 16 : 0, &moved);
	/* A segment may be sealed shortly after the bytes of the next one were counted: scan
	   again, once. */
	if (moved || due || held == process->held_bytes || held == process->scanned_bytes)
		process->held_bytes = held;
	process->scanned_bytes = held;
	return busy || moved > limit / 8 || left > limit / 4;
}

static int64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Lists the live directory only if its time of change is another one, or too close to the last
   listing to tell. archive_retire_dead() lists it in any case. */
static void notice_new(struct archive *archive)
{
	int64_t changed_ns, now_ns = realtime_ns();
	size_t before = archive->process_count;
	struct stat st;

	if (fstat(archive->live_fd, &st))
		return;
	changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (archive->listed_ns && changed_ns == archive->changed_ns &&
	    changed_ns < archive->listed_ns - COARSE_NS)
		return;
	archive->changed_ns = changed_ns;
	archive->listed_ns = now_ns;
	archive_for_each_name(archive->live_fd, archive_notice, archive);
	if (archive->process_count != before)
		archive->idle = 0;
}

int archive_pass(struct archive *archive)
{
	uint64_t limit = memory_limit(archive);
	bool busy = false;

	archive->idle++;
	notice_new(archive);
	if (archive->retry_ns && clock_monotonic_ns() < archive->retry_ns)
		return IDLE_MS;
	archive->retry_ns = 0;
	for (size_t i = 0; i < archive->process_count && !archive->retry_ns; i++)
		if (pass_process(archive, &archive->processes[i], limit))
			busy = true;
	if (!archive->retry_ns)
		archive->last_error = 0;
	if (busy && !archive->retry_ns)
		return BUSY_MS;
	return archive->idle > IDLE_PASSES && limit > LONG_IDLE_BYTES ? LONG_IDLE_MS : IDLE_MS;
}
