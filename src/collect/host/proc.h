/* Reads and parses files of /proc. All text is parsed defensively: names may contain anything. */
#ifndef KYMO_COLLECT_HOST_PROC_H
#define KYMO_COLLECT_HOST_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	pid_t pid, ppid, group, session;
	bool terminal; /* it has a controlling terminal */
	char state; /* 'R', 'S', 'T', 'Z', … */
	char name[64];
	uint64_t user_ticks, system_ticks; /* in units of 1/sysconf(_SC_CLK_TCK) s */
	uint64_t children_ticks, children_faults; /* of children that were waited for */
	uint64_t minor_faults, major_faults;
	uint64_t starttime;
	uint64_t vms_bytes, rss_bytes;
	uint32_t threads;
};

uint64_t proc_ticks_ns(uint64_t ticks);

/* Reads a file as NUL-terminated text, truncated to out_bytes. Returns the length or a negative
   errno. */
ssize_t proc_read(const char *path, char *out, size_t out_bytes);
/* Parses the text of /proc/PID/stat. 0 or -EINVAL. */
int proc_parse_stat(const char *text, struct proc_stat *out);
int proc_stat(pid_t pid, struct proc_stat *out);
/* True if the process with this pid and start time is running. A zombie is not. */
bool proc_alive(pid_t pid, uint64_t starttime);
/* The same for a process of another pid namespace, by its pid there. Reads all of /proc. */
bool proc_alive_elsewhere(pid_t pid, uint64_t starttime);
/* The number after "key" at the start of a line, such as "VmHWM:" or "read_bytes:"; fallback if
   there is none. */
uint64_t proc_field(const char *text, const char *key, uint64_t fallback);

#endif
