#include "collect/perf/perf_events.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/grow.h"

/* Of one processor and of all; a smaller one is used where less may be locked. 512 KB and the page
   of positions are within kernel.perf_event_mlock_kb, 516 by default. */
#define RING_BYTES (2u << 20)
#define RINGS_BYTES (64u << 20)
#define RING_BYTES_USUAL (512u << 10)
#define RING_BYTES_LEAST (128u << 10)
#define RECORD_MOST 65536 /* its size has 16 bits */
#define ROUNDS_MOST 8 /* until no new threads are found */
#define THREADS_MOST 16384

/* ---- one event ------------------------------------------------------------------------------- */

static int perf_open(const struct perf_event_attr *attr, pid_t tid, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, tid, cpu, group, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static struct perf_event_attr make_attr(const struct perf_events *events, uint64_t period_ns)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = period_ns;
	attr.sample_type = perf_record_sample_type();
	attr.sample_regs_user = perf_record_register_mask();
	attr.sample_stack_user = events->stack_bytes;
	attr.disabled = 1;
	attr.inherit = 1;
	attr.exclude_kernel = !events->with_kernel;
	attr.exclude_hv = 1;
	attr.enable_on_exec = events->on_exec;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.watermark = 1; /* wakes at half of a ring */
	return attr;
}

/* The event that stays also reports mappings, names, children and ends. Mappings have no build ids:
   the kernel would read the file of each new mapping, and mark the records of other tools as if
   they had build ids, too; perf record then aborts. */
static struct perf_event_attr make_slow_attr(const struct perf_events *events)
{
	struct perf_event_attr attr = make_attr(events, PERF_EVENTS_NS);

	attr.mmap = attr.mmap2 = 1;
	attr.comm = attr.comm_exec = 1;
	attr.task = 1;
	return attr;
}

/* Without privileges the kernel itself is not sampled. */
static int open_slow(struct perf_events *events, pid_t tid, int cpu)
{
	struct perf_event_attr attr = make_slow_attr(events);
	int fd = perf_open(&attr, tid, cpu, -1);

	if ((fd != -EACCES && fd != -EPERM) || !events->with_kernel)
		return fd;
	events->with_kernel = false;
	attr = make_slow_attr(events);
	return perf_open(&attr, tid, cpu, -1);
}

static bool add_fd(int **list, size_t *room, size_t *count, int fd)
{
	if (!grow((void **)list, room, *count, sizeof(**list))) {
		close(fd);
		return false;
	}
	(*list)[(*count)++] = fd;
	return true;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static int map_ring(struct perf_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = RING_BYTES;
	int rc = -EINVAL;

	while (bytes > RING_BYTES_USUAL &&
	       bytes * (size_t)sysconf(_SC_NPROCESSORS_CONF) > RINGS_BYTES)
		bytes /= 2;
	for (; bytes >= RING_BYTES_LEAST; bytes /= 2) {
		ring->memory = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				    ring->fd, 0);
		if (ring->memory != MAP_FAILED) {
			ring->data_bytes = bytes;
			return 0;
		}
		rc = -errno;
		ring->memory = NULL;
	}
	return rc;
}

static int open_ring(struct perf_events *events, pid_t tid, int cpu)
{
	struct perf_ring *ring = &events->rings[events->ring_count];
	int rc;

	*ring = (struct perf_ring){ .cpu = cpu, .fd = open_slow(events, tid, cpu) };
	if (ring->fd == -ENODEV)
		return 0; /* the processor is offline */
	if (ring->fd < 0)
		return ring->fd;
	rc = map_ring(ring);
	if (rc) {
		close(ring->fd);
		return rc;
	}
	if (!add_fd(&events->slow, &events->slow_room, &events->slow_count, ring->fd)) {
		munmap(ring->memory, (size_t)sysconf(_SC_PAGESIZE) + ring->data_bytes);
		return -ENOMEM;
	}
	events->ring_count++;
	return 0;
}

/* Kernels before 5.13 cannot keep it from children. */
static int open_fast(struct perf_events *events, pid_t tid, int cpu)
{
	struct perf_event_attr attr = make_attr(events, PERF_EVENTS_FIRST_NS);
	int fd;

	attr.inherit_thread = 1;
	fd = perf_open(&attr, tid, cpu, -1);
	if (fd != -EINVAL && fd != -E2BIG)
		return fd;
	attr.inherit_thread = 0;
	events->fast_in_children = true;
	return perf_open(&attr, tid, cpu, -1);
}

/* An event of one thread that writes to the ring of its processor. */
static int add_event(struct perf_events *events, const struct perf_ring *ring, pid_t tid, bool fast)
{
	int fd = fast ? open_fast(events, tid, ring->cpu) : open_slow(events, tid, ring->cpu);

	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	if (!(fast ? add_fd(&events->fast, &events->fast_room, &events->fast_count, fd)
		   : add_fd(&events->slow, &events->slow_room, &events->slow_count, fd)))
		return -ENOMEM;
	if (!events->on_exec)
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	return 0;
}

static int add_thread(struct perf_events *events, pid_t tid, bool owns_rings)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < events->ring_count; i++) {
		rc = owns_rings ? 0 : add_event(events, &events->rings[i], tid, false);
		if (!rc && !events->slowed)
			rc = add_event(events, &events->rings[i], tid, true);
	}
	return rc;
}

static void note_fast(struct perf_events *events, pid_t pid)
{
	if (grow((void **)&events->fast_pids, &events->fast_pid_room, events->fast_pid_count,
		 sizeof(pid)))
		events->fast_pids[events->fast_pid_count++] = pid;
}

bool perf_events_is_fast(const struct perf_events *events, pid_t pid)
{
	for (size_t i = 0; i < events->fast_pid_count; i++)
		if (events->fast_pids[i] == pid)
			return true;
	return events->fast_in_children;
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* The lowest level is -1. */
#define NO_LEVEL INT_MIN

static int read_paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	char text[16] = "";
	int level = NO_LEVEL;

	if (!file)
		return NO_LEVEL;
	if (fgets(text, sizeof(text), file))
		level = (int)strtol(text, NULL, 10);
	fclose(file);
	return level;
}

static int perf_events_refuse(struct kymo_error *err, int rc)
{
	int level = read_paranoid();

	if (rc == -ESRCH)
		return error_set(err, ESRCH, "the process has ended");
	if (rc == -ENOSYS || level == NO_LEVEL)
		return error_set(err, -rc, "no native stacks: the kernel has no perf events");
	if ((rc == -EACCES || rc == -EPERM) && level > 2)
		return error_set(err, -rc,
				 "no native stacks: the kernel refuses perf events; sudo sysctl "
				 "kernel.perf_event_paranoid=2 allows them");
	if (rc == -EACCES || rc == -EPERM)
		return error_set(err, -rc,
				 "no native stacks: perf_event_open is blocked, as by a seccomp "
				 "filter; in Docker, --cap-add PERFMON allows it");
	if (rc == -EMFILE)
		return error_set(
			err, -rc,
			"no native stacks: they need %ld open files for each thread; raise "
			"ulimit -n",
			2 * sysconf(_SC_NPROCESSORS_CONF));
	return error_set(err, -rc, "no native stacks: perf_event_open: %s", strerror(-rc));
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Threads times processors: more than the usual 1,024. Only the limit of this process changes. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_rings(struct perf_events *events, pid_t tid)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int rc = 0;

	if (!perf_record_register_mask())
		return -ENOTSUP;
	events->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*events->rings));
	if (!events->rings)
		return -ENOMEM;
	for (int cpu = 0; !rc && cpu < cpus; cpu++)
		rc = open_ring(events, tid, cpu);
	return rc ? rc : events->ring_count ? 0 : -ENODEV;
}

static int begin_with(struct perf_events *events, pid_t tid, uint32_t stack_bytes, bool on_exec)
{
	int rc;

	*events = (struct perf_events){ .with_kernel = true,
					.on_exec = on_exec,
					.stack_bytes = stack_bytes };
	allow_many_files();
	note_fast(events, tid);
	rc = open_rings(events, tid);
	return rc ? rc : add_thread(events, tid, true);
}

int perf_events_open_child(struct perf_events *events, pid_t pid, uint32_t stack_bytes,
			   struct kymo_error *err)
{
	int rc = begin_with(events, pid, stack_bytes, true);

	if (!rc)
		return 0;
	perf_events_close(events);
	return perf_events_refuse(err, rc);
}

struct found_threads {
	pid_t *tids;
	size_t count, room;
};

static bool is_known(const struct found_threads *known, pid_t tid)
{
	for (size_t i = 0; i < known->count; i++)
		if (known->tids[i] == tid)
			return true;
	return false;
}

/* Adds the threads that are not known yet, and returns their number, or a negative errno. */
static int add_new_threads(struct perf_events *events, pid_t pid, struct found_threads *known)
{
	char path[48];
	DIR *directory;
	struct dirent *entry;
	int added = 0, rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	while (directory && !rc && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || known->count >= THREADS_MOST || is_known(known, tid))
			continue;
		if (!grow((void **)&known->tids, &known->room, known->count, sizeof(tid)))
			break;
		known->tids[known->count++] = tid;
		rc = add_thread(events, tid, false);
		rc = rc == -ESRCH ? 0 : rc; /* it has ended */
		added++;
	}
	if (directory)
		closedir(directory);
	return rc ? rc : added;
}

/* Threads that start meanwhile inherit the events, or are found in the next round. */
static int add_all_threads(struct perf_events *events, pid_t pid, pid_t owner)
{
	struct found_threads known = { 0 };
	int added = 1;

	if (owner && grow((void **)&known.tids, &known.room, 0, sizeof(owner)))
		known.tids[known.count++] = owner;
	for (int round = 0; added > 0 && round < ROUNDS_MOST; round++)
		added = add_new_threads(events, pid, &known);
	free(known.tids);
	return added < 0 ? added : 0;
}

int perf_events_add_process(struct perf_events *events, pid_t pid, struct kymo_error *err)
{
	int rc = add_all_threads(events, pid, 0);

	note_fast(events, pid);
	return rc ? perf_events_refuse(err, rc) : 0;
}

int perf_events_open_process(struct perf_events *events, pid_t pid, uint32_t stack_bytes,
			     struct kymo_error *err)
{
	int rc = begin_with(events, pid, stack_bytes, false);

	for (size_t i = 0; !rc && i < events->ring_count; i++)
		ioctl(events->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	if (!rc)
		rc = add_all_threads(events, pid, pid);
	if (!rc)
		return 0;
	perf_events_close(events);
	return perf_events_refuse(err, rc);
}

void perf_events_slow_down(struct perf_events *events)
{
	for (size_t i = 0; i < events->fast_count; i++)
		close(events->fast[i]);
	free(events->fast);
	events->fast = NULL;
	events->slowed = true;
	events->fast_count = events->fast_room = 0;
}

void perf_events_pause(struct perf_events *events, bool paused)
{
	for (size_t i = 0; i < events->slow_count; i++)
		ioctl(events->slow[i], paused ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
}

void perf_events_close(struct perf_events *events)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	perf_events_slow_down(events);
	for (size_t i = 0; i < events->slow_count; i++)
		close(events->slow[i]);
	for (size_t i = 0; i < events->ring_count; i++) {
		munmap(events->rings[i].memory, page + events->rings[i].data_bytes);
		free(events->rings[i].wrapped);
	}
	free(events->slow);
	free(events->fast_pids);
	free(events->rings);
	memset(events, 0, sizeof(*events));
}

int perf_events_check(struct kymo_error *err)
{
	struct perf_events events;
	int rc = perf_events_open_child(&events, getpid(), 8192, err);

	if (!rc)
		perf_events_close(&events);
	return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

void perf_events_wait(struct perf_events *events, int wake_fd, int timeout_ms)
{
	struct pollfd *fds = calloc(events->ring_count + 1, sizeof(*fds));

	for (size_t i = 0; fds && i < events->ring_count; i++)
		fds[i] = (struct pollfd){ .fd = events->rings[i].ended ? -1 : events->rings[i].fd,
					  .events = POLLIN };
	if (fds)
		fds[events->ring_count] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	poll(fds, fds ? events->ring_count + 1 : 0, timeout_ms);
	for (size_t i = 0; fds && i < events->ring_count; i++)
		if (fds[i].revents & (POLLHUP | POLLERR))
			events->rings[i].ended = true;
	free(fds);
}

void perf_events_begin(struct perf_events *events)
{
	for (size_t i = 0; i < events->ring_count; i++) {
		struct perf_ring *ring = &events->rings[i];
		const struct perf_event_mmap_page *page = ring->memory;

		/* Pairs with the kernel's release after it has written the records. */
		ring->head = kymo__load_acquire(&page->data_head);
	}
}

static const unsigned char *data_of(const struct perf_ring *ring)
{
	return (const unsigned char *)ring->memory + sysconf(_SC_PAGESIZE);
}

/* Copies what wraps. NULL: out of memory. */
static const void *perf_events_record_at(struct perf_ring *ring, size_t bytes)
{
	uint64_t from = ring->tail & (ring->data_bytes - 1), until = ring->data_bytes - from;

	if (bytes <= until)
		return data_of(ring) + from;
	if (!ring->wrapped)
		ring->wrapped = malloc(RECORD_MOST);
	if (!ring->wrapped)
		return NULL;
	memcpy(ring->wrapped, data_of(ring) + from, until);
	memcpy(ring->wrapped + until, data_of(ring), bytes - until);
	return ring->wrapped;
}

bool perf_events_next(struct perf_events *events, size_t number, const void **out_record,
		      size_t *out_bytes)
{
	struct perf_ring *ring = &events->rings[number];
	struct perf_event_header head;
	uint64_t left = ring->head - ring->tail;

	if (left < sizeof(head) || left > ring->data_bytes)
		return false;
	/* Records are multiples of 8 bytes, so a header of 8 does not wrap. */
	memcpy(&head, data_of(ring) + (ring->tail & (ring->data_bytes - 1)), sizeof(head));
	if (head.size < sizeof(head) || head.size > left || head.size % 8) {
		ring->tail = ring->head; /* damaged */
		return false;
	}
	*out_bytes = head.size;
	*out_record = perf_events_record_at(ring, head.size);
	ring->tail += head.size;
	return *out_record != NULL;
}

void perf_events_end(struct perf_events *events)
{
	for (size_t i = 0; i < events->ring_count; i++) {
		struct perf_event_mmap_page *page = events->rings[i].memory;

		events->rings[i].tail = events->rings[i].head;
		/* The kernel may overwrite them after it has seen this. */
		kymo__store_release(&page->data_tail, events->rings[i].head);
	}
}
