/*
 * Recording allocates nothing per zone. malloc and mmap of this program and its libraries are the
 * ones below, which count; the kernel counts pages that were touched for the first time.
 */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "bench.h"

#define ZONES 4000000u
#define WARM_ZONES 200000u /* the ring is whole, all names and slots are there */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static uint64_t allocations, maps;

void *malloc(size_t bytes)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_realloc(old, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	__atomic_fetch_add(&maps, 1, __ATOMIC_RELAXED);
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

static long page_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void record(uint32_t zones)
{
	for (uint32_t i = 0; i < zones; i += 4) {
		KYMO_SCOPE("bench.alloc.outer");
		{
			KYMO_SCOPE("bench.alloc.first");
		}
		{
			KYMO_SCOPE("bench.alloc.second");
		}
		{
			KYMO_SCOPE("bench.alloc.third");
		}
	}
}

int main(void)
{
	uint64_t allocated, mapped;
	long faults;

	if (!kymo_enabled() || !maps) {
		fprintf(stderr, "alloc: %s\n",
			maps ? "nothing is recorded: set KYMO=on" : "mmap is not counted");
		return 1;
	}
	record(WARM_ZONES);
	allocated = allocations;
	mapped = maps;
	faults = page_faults();
	record(ZONES);
	faults = page_faults() - faults;
	allocated = allocations - allocated;
	mapped = maps - mapped;
	bench_emit("alloc.malloc", "", (double)allocated);
	bench_emit("alloc.mmap", "", (double)mapped);
	bench_emit("alloc.faults", "", (double)faults);
	return 0;
}
