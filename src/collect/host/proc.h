/* What /proc says about a process, and about the host. Every text here is parsed defensively: names
   may hold anything. */
#ifndef KYMO_COLLECT_HOST_PROC_H
#define KYMO_COLLECT_HOST_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	pid_t pid, ppid, group;
	char state; /* 'R', 'S', 'T', 'Z', … */
	char name[64];
	uint64_t user_ticks, system_ticks; /* of 1/sysconf(_SC_CLK_TCK) s */
	uint64_t minor_faults, major_faults;
	uint64_t starttime;
	uint64_t vms_bytes, rss_bytes;
	uint32_t threads;
};

/* Reads a file as text, NUL-ended. Its length, or a negative errno. Longer files are cut. */
ssize_t proc_read(const char *path, char *out, size_t out_bytes);
/* The text of /proc/PID/stat. 0 or -EINVAL. */
int proc_parse_stat(const char *text, struct proc_stat *out);
int proc_stat(pid_t pid, struct proc_stat *out);
/* Runs (a zombie does not), and is the one that began then, not another that got its pid. */
bool proc_alive(pid_t pid, uint64_t starttime);
/* The same for a process of another pid namespace, by the pid that it has there. Reads all of
   /proc. */
bool proc_alive_elsewhere(pid_t pid, uint64_t starttime);
/* The number that follows "key" at the start of a line: "VmHWM:", "read_bytes:"; fallback where
   there is none. */
uint64_t proc_field(const char *text, const char *key, uint64_t fallback);

#endif
