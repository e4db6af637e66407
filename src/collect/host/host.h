/* System metrics of the program, its descendants and the host: rows of host.process, host.threads,
   host.io, host.cpu, host.network and host.cgroup. (gpu.c writes host.gpu.) */
#ifndef KYMO_COLLECT_HOST_HOST_H
#define KYMO_COLLECT_HOST_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "collect/host/cgroup.h"
#include "collect/host/family.h"
#include "collect/host/host_others.h"

/* The values of /proc/stat for one cpu or all of them. */
struct host_cpu {
	uint64_t busy, iowait, all; /* ticks since boot */
};

struct host {
	struct host_cpu *cpus; /* [0] is all; [n + 1] is cpu n */
	size_t cpu_count;
	uint64_t pressure_us;
	uint64_t sampled_ns;
	char *text; /* buffer for files of /proc */
	struct cgroup cgroup;
	struct host_others others;
};

/* Parses a line "cpuN user nice …" of /proc/stat. Returns N (-1: all), or -2: another line. */
int host_parse_cpu(const char *line, struct host_cpu *out);
/* Parses a line of /proc/net/dev. 0, or -1: a heading or invalid. */
int host_parse_interface(const char *line, char *out_name, size_t name_bytes, uint64_t *out_rx,
			 uint64_t *out_tx);

int host_init(struct host *host);
/* Writes one row for each running process, cpu and interface. */
void host_sample(struct host *host, struct family *family);
/* Writes the last row of the program while it is a zombie, with its peak memory from wait4(). */
void host_last(struct host *host, struct family *family, const struct rusage *usage);
void host_fini(struct host *host);

#endif
