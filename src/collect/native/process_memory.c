#include "collect/native/process_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "collect/host/proc.h"

#define PARTS_AT_ONCE 512 /* below IOV_MAX */

static __thread uint64_t deadline_ns;

uint64_t process_memory_deadline(void)
{
	return deadline_ns;
}

void process_memory_set_deadline(uint64_t at_ns)
{
	deadline_ns = at_ns;
}

bool process_memory_begin(uint64_t within_ns)
{
	if (deadline_ns)
		return false;
	deadline_ns = clock_monotonic_ns() + within_ns;
	return true;
}

bool process_memory_late(void)
{
	return deadline_ns && clock_monotonic_ns() > deadline_ns;
}

ssize_t process_memory_read_some(pid_t pid, uint64_t address, void *out, size_t bytes)
{
	struct iovec here = { out, bytes };
	struct iovec there = { (void *)(uintptr_t)address, bytes };
	ssize_t got;

	if (process_memory_late())
		return -ETIMEDOUT;
	got = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return got < 0 ? -errno : got;
}

int process_memory_read(pid_t pid, uint64_t address, void *out, size_t bytes)
{
	ssize_t got = process_memory_read_some(pid, address, out, bytes);

	if (got < 0)
		return (int)got;
	return (size_t)got == bytes ? 0 : -EFAULT;
}

uint64_t process_memory_pointer(pid_t pid, uint64_t address)
{
	uint64_t value = 0;

	return process_memory_read(pid, address, &value, sizeof(value)) ? 0 : value;
}

bool process_memory_batch_add(struct process_memory_batch *batch, uint64_t address, void *out,
			      size_t bytes)
{
	if (!grow((void **)&batch->parts, &batch->room, batch->count, sizeof(*batch->parts)))
		return false;
	batch->parts[batch->count++] = (struct process_memory_part){ address, out, bytes, false };
	return true;
}

/* Reads parts from `at` on with one system call. Returns the number of processed parts or a
   negative errno. The kernel stops at the first unmapped byte: that part has failed, and the next
   call continues after it. */
static ssize_t process_memory_read_run(struct process_memory_batch *batch, pid_t pid, size_t at)
{
	struct iovec here[PARTS_AT_ONCE], there[PARTS_AT_ONCE];
	size_t count = 0, done = 0;
	ssize_t got;

	if (process_memory_late())
		return -ETIMEDOUT;
	for (; count < PARTS_AT_ONCE && at + count < batch->count; count++) {
		const struct process_memory_part *part = &batch->parts[at + count];

		here[count] = (struct iovec){ part->out, part->bytes };
		there[count] = (struct iovec){ (void *)(uintptr_t)part->address, part->bytes };
	}
	got = process_vm_readv(pid, here, count, there, count, 0);
	batch->calls++;
	if (got < 0 && errno != EFAULT)
		return -errno;
	while (done < count && got >= (ssize_t)batch->parts[at + done].bytes) {
		got -= (ssize_t)batch->parts[at + done].bytes;
		batch->parts[at + done++].ok = true;
	}
	return (ssize_t)(done < count ? done + 1 : done);
}

int process_memory_batch_read(struct process_memory_batch *batch, pid_t pid)
{
	for (size_t at = 0; at < batch->count;) {
		ssize_t done = process_memory_read_run(batch, pid, at);

		if (done < 0)
			return (int)done;
		at += (size_t)done;
	}
	return 0;
}

void process_memory_batch_clear(struct process_memory_batch *batch)
{
	batch->count = 0;
}

void process_memory_batch_fini(struct process_memory_batch *batch)
{
	free(batch->parts);
	memset(batch, 0, sizeof(*batch));
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool is_foreign(pid_t pid)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &st) && st.st_uid != geteuid();
}

static long yama_scope(void)
{
	char text[16];

	return proc_read("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) > 0
		       ? strtol(text, NULL, 10)
		       : 0;
}

static const char *command = "backtrace"; /* suggested with sudo */

void process_memory_name_command(const char *name)
{
	command = name;
}

int process_memory_refused(struct kymo_error *err, pid_t pid, int code)
{
	if (code == ESRCH)
		return error_set(err, ESRCH, "process %d does not exist", (int)pid);
	if (code == ENOSYS)
		return error_set(err, ENOSYS,
				 "process_vm_readv is blocked by a seccomp filter; in a container, "
				 "add --cap-add SYS_PTRACE --security-opt seccomp=unconfined");
	if (code == ETIMEDOUT)
		return error_set(
			err, ETIMEDOUT,
			"reading process %d took longer than %llu s: its memory is damaged "
			"or changes too fast",
			(int)pid, PROCESS_MEMORY_WITHIN_NS / 1000000000);
	if (code != EPERM && code != EACCES)
		return error_set(err, code, "cannot read the memory of process %d: %s", (int)pid,
				 strerror(code));
	if (is_foreign(pid) && geteuid() != 0)
		return error_set(err, code,
				 "process %d belongs to another user; use sudo kymo %s %d",
				 (int)pid, command, (int)pid);
	if (yama_scope() >= 3)
		return error_set(err, code,
				 "cannot read process %d: kernel.yama.ptrace_scope is 3; reboot "
				 "with ptrace_scope=1 and start the program with kymo run",
				 (int)pid);
	if (yama_scope() >= 1 && geteuid() != 0)
		return error_set(err, code,
				 "cannot read process %d: kernel.yama.ptrace_scope is %ld; use "
				 "sudo kymo %s %d or sudo sysctl kernel.yama.ptrace_scope=0, or "
				 "start the program with kymo run",
				 (int)pid, yama_scope(), command, (int)pid);
	return error_set(err, code,
			 "cannot read process %d: permission denied; in a container, add --cap-add "
			 "SYS_PTRACE, elsewhere use sudo kymo %s %d",
			 (int)pid, command, (int)pid);
}
