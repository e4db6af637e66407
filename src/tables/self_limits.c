#include "tables/self_limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* DuckDB's allocator keeps freed address space, and a plan has memory outside of the buffers.
   Measured: sorts, aggregates and lists at their limit of 512 MiB have 490 to 790 MB mapped. */
#define SLACK_BYTES (UINT64_C(256) << 20)
#define SLACK_SHARE 4
/* Address space that malloc reserves for each thread without using it; it counts for RLIMIT_AS
   only. */
#define ARENA_BYTES (UINT64_C(128) << 20)
#define CPU_GRACE_SECONDS 2

static bool armed;

void self_limits_arm(void)
{
	armed = true;
}

bool self_limits_armed(void)
{
	return armed;
}

struct present {
	uint64_t address_bytes, data_bytes;
};

static int read_present(struct present *out, struct kymo_error *err)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long size = 0, data = 0;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int count = file ? fscanf(file, "%llu %*u %*u %*u %*u %llu", &size, &data) : 0;

	if (file)
		fclose(file);
	if (count != 2)
		return error_set(err, EIO,
				 "cannot limit the memory of a query: /proc/self/statm is not "
				 "readable; mount /proc");
	*out = (struct present){ size * page, data * page };
	return 0;
}

/* Lowers a limit. The hard limit follows, so that nothing inside can raise it again. */
static int lower(__rlimit_resource_t resource, uint64_t soft, uint64_t hard, struct kymo_error *err)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return error_set(err, errno, "cannot read a resource limit: %s", strerror(errno));
	limit.rlim_max = limit.rlim_max < hard ? limit.rlim_max : hard;
	limit.rlim_cur = limit.rlim_cur < soft ? limit.rlim_cur : soft;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	if (setrlimit(resource, &limit))
		return error_set(err, errno, "cannot set a resource limit: %s", strerror(errno));
	return 0;
}

/* RLIMIT_DATA counts what can be written, which is what matters; RLIMIT_AS also counts shared and
   reserved address space, and so holds with more room. */
static int limit_memory(uint64_t memory_bytes, struct kymo_error *err)
{
	uint64_t more = memory_bytes + memory_bytes / SLACK_SHARE + SLACK_BYTES;
	uint64_t reserved = ((uint64_t)get_nprocs() + 4) * ARENA_BYTES;
	struct present present = { 0 };
	int rc = read_present(&present, err);

	if (!rc)
		rc = lower(RLIMIT_DATA, present.data_bytes + more, present.data_bytes + more, err);
	if (!rc)
		rc = lower(RLIMIT_AS, present.address_bytes + more + reserved,
			   present.address_bytes + more + reserved, err);
	return rc;
}

static int limit_cpu(uint32_t cpu_seconds, struct kymo_error *err)
{
	struct rusage usage;
	uint64_t until;

	if (getrusage(RUSAGE_SELF, &usage))
		return error_set(err, errno, "cannot read the CPU time: %s", strerror(errno));
	until = (uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec + 2 + cpu_seconds;
	return lower(RLIMIT_CPU, until, until + CPU_GRACE_SECONDS, err);
}

int self_limits_set(uint64_t memory_bytes, uint32_t cpu_seconds, struct kymo_error *err)
{
	int rc = memory_bytes ? limit_memory(memory_bytes, err) : 0;

	if (!rc && cpu_seconds)
		rc = limit_cpu(cpu_seconds, err);
	return rc;
}
