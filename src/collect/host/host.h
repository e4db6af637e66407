/* System metrics of the program, its descendants and the host: rows of host.process, host.threads,
   host.io, host.cpu, host.network, host.cgroup. (host.gpu is gpu.c's.) */
#ifndef KYMO_COLLECT_HOST_HOST_H
#define KYMO_COLLECT_HOST_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "collect/host/cgroup.h"
#include "collect/run/family.h"

/* What /proc/stat says of a cpu, or of all of them. */
struct host_cpu {
	uint64_t busy, iowait, all; /* ticks since boot */
};

struct host {
	struct host_cpu *cpus; /* [0] is all; [n + 1] is cpu n */
	size_t cpu_count;
	uint64_t pressure_us;
	uint64_t sampled_ns;
	char *text; /* for files of /proc */
	struct cgroup cgroup;
};

/* The line "cpuN user nice …" of /proc/stat: its number (-1: all), or -2: no such line. */
int host_parse_cpu(const char *line, struct host_cpu *out);
/* A line of /proc/net/dev. 0, or -1: a heading, or not understood. */
int host_parse_interface(const char *line, char *out_name, size_t name_bytes, uint64_t *out_rx,
			 uint64_t *out_tx);

int host_init(struct host *host);
/* Writes one row for each process that runs, cpu and interface. */
void host_sample(struct host *host, struct family *family);
/* The last row of the program: it is a zombie still, and its peak memory is known from wait4()
   alone. */
void host_last(struct host *host, struct family *family, const struct rusage *usage);
void host_fini(struct host *host);

#endif
