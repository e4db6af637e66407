/*
 * Who else uses the cores: while threads of the program are ready to run and have none, the other
 * processes of the machine are compared at two moments, and the mark "cores used by others" names
 * those that used most CPU time in between. A scan reads all of /proc, so it is rare.
 */
#ifndef KYMO_COLLECT_HOST_HOST_OTHERS_H
#define KYMO_COLLECT_HOST_HOST_OTHERS_H

#include <stddef.h>
#include <stdint.h>

#include "collect/host/family.h"

#define HOST_OTHERS_MARK "cores used by others"

struct host_others_process {
	pid_t pid;
	uint64_t starttime, cpu_ticks;
};

struct host_others {
	struct host_others_process *before; /* of the first scan; NULL: none */
	size_t before_count;
	uint64_t scanned_ns, next_ns; /* time of the first scan, and of the next pair */
	uint64_t looked_ns, delay_ns; /* of the look before */
};

/* Called with each sample of the processes. */
void host_others_look(struct host_others *others, const struct family *family, uint64_t now_ns);
void host_others_fini(struct host_others *others);

#endif
