#include "collect/wait/wait_kind.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "collect/host/proc.h"
#include "collect/native/process_memory.h"
#include "collect/wait/wait_fd.h"

#define POLLED_MOST 8 /* descriptors of a call that are looked at */

const char *wait_kind_word(enum wait_kind kind)
{
	static const char *const words[] = {
		[WAIT_OTHER] = "wait",	    [WAIT_RUNNING] = "running",
		[WAIT_READY] = "ready",	    [WAIT_SLEEP] = "sleep",
		[WAIT_DISK] = "disk",	    [WAIT_LOCK] = "lock",
		[WAIT_GIL] = "GIL",	    [WAIT_SOCKET] = "socket",
		[WAIT_PIPE] = "pipe",	    [WAIT_CHILD] = "child",
		[WAIT_DEVICE] = "device",   [WAIT_COLLECTIVE] = "collective",
		[WAIT_STOPPED] = "stopped",
	};

	return words[kind];
}

enum wait_kind wait_kind_of_state(char state)
{
	return state == 'R'		      ? WAIT_RUNNING
	       : state == 'D'		      ? WAIT_DISK
	       : state == 'T' || state == 't' ? WAIT_STOPPED
					      : WAIT_OTHER;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void copy_target(struct wait_answer *out, const char *text)
{
	snprintf(out->target, sizeof(out->target), "%.*s", WAIT_TARGET_BYTES - 1, text);
}

static void take_peer(pid_t pid, uint64_t inode, struct wait_peers *peers, struct wait_answer *out)
{
	struct buf peer = { 0 };

	for (size_t i = 0; peers && i < WAIT_PEERS; i++)
		if (peers->known[i].inode == inode) {
			copy_target(out, peers->known[i].peer);
			return;
		}
	wait_fd_add_peer(&peer, pid, inode);
	copy_target(out, buf_get(&peer));
	buf_fini(&peer);
	if (!peers)
		return;
	peers->known[peers->next].inode = inode;
	strcpy(peers->known[peers->next].peer, out->target);
	peers->next = (peers->next + 1) % WAIT_PEERS;
}

static void take_character_device(const char *path, struct wait_answer *out)
{
	static const char *const devices[] = { "/dev/nvidia", "/dev/dri", "/dev/kfd", "/dev/neuron",
					       "/dev/accel" };

	out->kind = WAIT_OTHER;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (!strncmp(path, devices[i], strlen(devices[i])))
			out->kind = WAIT_DEVICE;
	copy_target(out, strncmp(path, "/dev/pts", 8) && strncmp(path, "/dev/tty", 8)
				 ? path
				 : "the terminal");
}

static void take_fd(pid_t pid, long fd, struct wait_peers *peers, struct wait_answer *out)
{
	char path[64], link[WAIT_TARGET_BYTES + 256];
	struct statx file;
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", (int)pid, fd);
	bytes = readlink(path, link, sizeof(link) - 1);
	/* As the kernel knows the file: a server that does not answer keeps its readers, not us. */
	if (bytes <= 0 || statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
				STATX_TYPE | STATX_INO, &file))
		return;
	link[bytes] = '\0';
	if (S_ISSOCK(file.stx_mode)) {
		out->kind = WAIT_SOCKET;
		take_peer(pid, file.stx_ino, peers, out);
	} else if (S_ISFIFO(file.stx_mode)) {
		out->kind = WAIT_PIPE;
		copy_target(out, link[0] == '/' ? link : "");
	} else if (S_ISCHR(file.stx_mode)) {
		take_character_device(link, out);
	} else if (link[0] == '/') {
		out->kind = WAIT_DISK;
		copy_target(out, link);
	}
}

/* ---- several descriptors --------------------------------------------------------------------- */

/* A socket with a peer tells more than the pipe with which a program wakes itself. */
static void take_best(pid_t pid, const int *fds, size_t count, struct wait_peers *peers,
		      struct wait_answer *out)
{
	for (size_t i = 0; i < count; i++) {
		struct wait_answer one = { WAIT_OTHER, "" };

		take_fd(pid, fds[i], peers, &one);
		if (out->kind == WAIT_OTHER || (one.kind == WAIT_SOCKET && one.target[0]))
			*out = one;
		if (out->kind == WAIT_SOCKET && out->target[0])
			return;
	}
}

static void take_poll(pid_t pid, const struct wait_call *call, struct wait_peers *peers,
		      struct wait_answer *out)
{
	size_t count = call->argument[1] < POLLED_MOST ? (size_t)call->argument[1] : POLLED_MOST;
	struct pollfd polled[POLLED_MOST];
	int fds[POLLED_MOST];

	if (!count) {
		out->kind = WAIT_SLEEP;
		return;
	}
	if (process_memory_read(pid, call->argument[0], polled, count * sizeof(polled[0])))
		return;
	for (size_t i = 0; i < count; i++)
		fds[i] = polled[i].fd;
	take_best(pid, fds, count, peers, out);
}

static void take_select(pid_t pid, const struct wait_call *call, struct wait_peers *peers,
			struct wait_answer *out)
{
	size_t most = call->argument[0] < 1024 ? (size_t)call->argument[0] : 1024, count = 0;
	int fds[POLLED_MOST];

	for (int set = 1; set <= 2; set++) {
		unsigned char bits[128] = { 0 };

		if (!call->argument[set] || !most ||
		    process_memory_read(pid, call->argument[set], bits, (most + 7) / 8))
			continue;
		for (size_t i = 0; i < most && count < POLLED_MOST; i++)
			if (bits[i / 8] >> (i % 8) & 1)
				fds[count++] = (int)i;
	}
	if (!most)
		out->kind = WAIT_SLEEP;
	take_best(pid, fds, count, peers, out);
}

/* "tfd:        5 events: …" for each descriptor. */
static void take_epoll(pid_t pid, long fd, struct wait_peers *peers, struct wait_answer *out)
{
	char path[64], text[4096];
	int fds[POLLED_MOST];
	size_t count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%ld", (int)pid, fd);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	for (const char *at = text; count < POLLED_MOST && (at = strstr(at, "tfd:")); at += 4)
		fds[count++] = (int)strtol(at + 4, NULL, 10);
	take_best(pid, fds, count, peers, out);
	if (out->kind == WAIT_SOCKET && out->target[0])
		return;
	*out = (struct wait_answer){ WAIT_OTHER, "events" };
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum how { HOW_FD, HOW_POLL, HOW_SELECT, HOW_EPOLL, HOW_CHILD, HOW_PLAIN, HOW_FD_OR_DISK };

static const struct wait_kind_row {
	long number;
	enum how how;
	enum wait_kind kind; /* unless the descriptor tells another */
} calls[] = {
	{ SYS_read, HOW_FD, WAIT_OTHER },	    { SYS_pread64, HOW_FD, WAIT_DISK },
	{ SYS_readv, HOW_FD, WAIT_OTHER },	    { SYS_preadv, HOW_FD, WAIT_DISK },
	{ SYS_write, HOW_FD, WAIT_OTHER },	    { SYS_pwrite64, HOW_FD, WAIT_DISK },
	{ SYS_writev, HOW_FD, WAIT_OTHER },	    { SYS_pwritev, HOW_FD, WAIT_DISK },
	{ SYS_recvfrom, HOW_FD, WAIT_SOCKET },	    { SYS_recvmsg, HOW_FD, WAIT_SOCKET },
	{ SYS_sendto, HOW_FD, WAIT_SOCKET },	    { SYS_sendmsg, HOW_FD, WAIT_SOCKET },
	{ SYS_accept, HOW_FD, WAIT_SOCKET },	    { SYS_accept4, HOW_FD, WAIT_SOCKET },
	{ SYS_connect, HOW_FD, WAIT_SOCKET },	    { SYS_ioctl, HOW_FD, WAIT_OTHER },
	{ SYS_fsync, HOW_FD, WAIT_DISK },	    { SYS_fdatasync, HOW_FD, WAIT_DISK },
	{ SYS_sync_file_range, HOW_FD, WAIT_DISK }, { SYS_fallocate, HOW_FD, WAIT_DISK },
	{ SYS_ftruncate, HOW_FD, WAIT_DISK },	    { SYS_getdents64, HOW_FD, WAIT_DISK },
	{ SYS_sendfile, HOW_FD, WAIT_DISK },	    { SYS_copy_file_range, HOW_FD, WAIT_DISK },
	{ SYS_flock, HOW_FD_OR_DISK, WAIT_LOCK },   { SYS_sync, HOW_PLAIN, WAIT_DISK },
	{ SYS_syncfs, HOW_PLAIN, WAIT_DISK },	    { SYS_msync, HOW_PLAIN, WAIT_DISK },
	{ SYS_openat, HOW_PLAIN, WAIT_DISK },	    { SYS_unlinkat, HOW_PLAIN, WAIT_DISK },
	{ SYS_renameat2, HOW_PLAIN, WAIT_DISK },    { SYS_statx, HOW_PLAIN, WAIT_DISK },
	{ SYS_ppoll, HOW_POLL, WAIT_OTHER },	    { SYS_pselect6, HOW_SELECT, WAIT_OTHER },
	{ SYS_epoll_pwait, HOW_EPOLL, WAIT_OTHER }, { SYS_futex, HOW_PLAIN, WAIT_LOCK },
	{ SYS_nanosleep, HOW_PLAIN, WAIT_SLEEP },   { SYS_clock_nanosleep, HOW_PLAIN, WAIT_SLEEP },
	{ SYS_wait4, HOW_CHILD, WAIT_CHILD },	    { SYS_waitid, HOW_PLAIN, WAIT_CHILD },
	{ SYS_clone, HOW_PLAIN, WAIT_CHILD }, /* a vfork, until the child calls exec */
#ifdef SYS_poll
	{ SYS_poll, HOW_POLL, WAIT_OTHER },	    { SYS_select, HOW_SELECT, WAIT_OTHER },
	{ SYS_epoll_wait, HOW_EPOLL, WAIT_OTHER },  { SYS_open, HOW_PLAIN, WAIT_DISK },
	{ SYS_unlink, HOW_PLAIN, WAIT_DISK },	    { SYS_rename, HOW_PLAIN, WAIT_DISK },
	{ SYS_vfork, HOW_PLAIN, WAIT_CHILD },
#endif
};

static void take_child(pid_t child, struct wait_answer *out)
{
	struct proc_stat stat_of;

	if (child > 0 && !proc_stat(child, &stat_of))
		copy_target(out, stat_of.name);
}

/* A path is shown for a lock of a file, but it is a lock. */
static void take_lock_of_file(pid_t pid, long fd, struct wait_answer *out)
{
	take_fd(pid, fd, NULL, out);
	out->kind = WAIT_LOCK;
}

static void take_target(pid_t pid, const struct wait_call *call, enum how how,
			struct wait_peers *peers, struct wait_answer *out)
{
	switch (how) {
	case HOW_FD: take_fd(pid, (long)call->argument[0], peers, out); break;
	case HOW_FD_OR_DISK: take_lock_of_file(pid, (long)call->argument[0], out); break;
	case HOW_POLL: take_poll(pid, call, peers, out); break;
	case HOW_SELECT: take_select(pid, call, peers, out); break;
	case HOW_EPOLL: take_epoll(pid, (long)call->argument[0], peers, out); break;
	case HOW_CHILD: take_child((pid_t)(int32_t)call->argument[0], out); break;
	default: break;
	}
}

void wait_kind_of_call(pid_t pid, const struct wait_call *call, struct wait_peers *peers,
		       struct wait_answer *out)
{
	*out = (struct wait_answer){ WAIT_OTHER, "" };
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number != call->number)
			continue;
		out->kind = calls[i].kind;
		take_target(pid, call, calls[i].how, peers, out);
		return;
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

enum wait_kind wait_kind_of_channel(const char *name)
{
	static const struct {
		const char *part;
		enum wait_kind kind;
	} channels[] = {
		{ "nanosleep", WAIT_SLEEP },	{ "futex", WAIT_LOCK },
		{ "pipe_", WAIT_PIPE },		{ "do_wait", WAIT_CHILD },
		{ "sk_wait", WAIT_SOCKET },	{ "inet_csk", WAIT_SOCKET },
		{ "unix_stream", WAIT_SOCKET }, { "wait_for_more_packets", WAIT_SOCKET },
		{ "folio_wait", WAIT_DISK },	{ "io_schedule", WAIT_DISK },
		{ "wait_on_page", WAIT_DISK },	{ "jbd2", WAIT_DISK },
	};

	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++)
		if (strstr(name, channels[i].part))
			return channels[i].kind;
	return WAIT_OTHER;
}

static enum wait_kind kind_by_channel(pid_t pid, pid_t tid, char state)
{
	char path[64], text[64];
	enum wait_kind kind = WAIT_OTHER;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
	if (proc_read(path, text, sizeof(text)) > 0)
		kind = wait_kind_of_channel(text);
	return kind == WAIT_OTHER ? wait_kind_of_state(state) : kind;
}

void wait_kind_of_thread(pid_t pid, pid_t tid, char state, struct wait_peers *peers,
			 struct wait_call *out_call, struct wait_answer *out)
{
	int rc;

	*out_call = (struct wait_call){ .number = -1 };
	*out = (struct wait_answer){ wait_kind_of_state(state), "" };
	if (out->kind == WAIT_RUNNING || out->kind == WAIT_STOPPED)
		return;
	rc = wait_call_read(pid, tid, out_call);
	if (rc == 1)
		out->kind = WAIT_RUNNING; /* it was woken since */
	else if (rc)
		out->kind = kind_by_channel(pid, tid, state);
	else if (out_call->number >= 0)
		wait_kind_of_call(pid, out_call, peers, out);
	if (out->kind == WAIT_OTHER && !out->target[0])
		out->kind = wait_kind_of_state(state); /* D is a disk in any call */
}
