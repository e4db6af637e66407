/* Counts what is allocated, and says it at the end: a truth to compare with. For LD_PRELOAD. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static uint64_t allocations, allocated;

static void *counted(void *ptr, size_t bytes)
{
	if (ptr) {
		__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&allocated, bytes, __ATOMIC_RELAXED);
	}
	return ptr;
}

void *malloc(size_t bytes)
{
	return counted(__libc_malloc(bytes), bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return counted(__libc_calloc(count, bytes), count * bytes);
}

void *realloc(void *old, size_t bytes)
{
	return counted(__libc_realloc(old, bytes), bytes);
}

void *reallocarray(void *old, size_t count, size_t bytes)
{
	return counted(__libc_realloc(old, count * bytes), count * bytes);
}

void *memalign(size_t align, size_t bytes)
{
	return counted(__libc_memalign(align, bytes), bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return counted(__libc_memalign(align, bytes), bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	*out = counted(__libc_memalign(align, bytes), bytes);
	return *out ? 0 : ENOMEM;
}

__attribute__((destructor)) static void say(void)
{
	char line[96];
	int bytes = snprintf(line, sizeof(line), "%llu %llu\n", (unsigned long long)allocations,
			     (unsigned long long)allocated);

	if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
		_exit(1);
}
