/* Reads memory of another process without stopping it. All data from there is untrusted. */
#ifndef KYMO_COLLECT_NATIVE_PROCESS_MEMORY_H
#define KYMO_COLLECT_NATIVE_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * A deadline for everything that this thread reads from other processes, CLOCK_MONOTONIC; 0: none.
 * Later reads fail with -ETIMEDOUT, so that no list in a damaged or hostile program holds its
 * reader. Long loops without reads ask process_memory_late().
 */
#define PROCESS_MEMORY_WITHIN_NS 5000000000ull
uint64_t process_memory_deadline(void);
void process_memory_set_deadline(uint64_t at_ns);
/* Sets a deadline from now on, unless there is one. False: there is; its owner clears it. */
bool process_memory_begin(uint64_t within_ns);
bool process_memory_late(void);

/* Reads all bytes. 0 or a negative errno. */
int process_memory_read(pid_t pid, uint64_t address, void *out, size_t bytes);
/* Reads up to `bytes` bytes. Returns the bytes read or a negative errno. */
ssize_t process_memory_read_some(pid_t pid, uint64_t address, void *out, size_t bytes);
uint64_t process_memory_pointer(pid_t pid, uint64_t address); /* 0 if it cannot be read */

/* A word and an int of copied memory. */
static inline uint64_t process_memory_word(const void *bytes, int32_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)bytes + offset, 8);
	return value;
}
static inline int32_t process_memory_int(const void *bytes, int32_t offset)
{
	int32_t value;

	memcpy(&value, (const char *)bytes + offset, 4);
	return value;
}

/* Collects reads and performs them with few system calls, in the order of their addition. */
struct process_memory_part {
	uint64_t address;
	void *out;
	size_t bytes;
	bool ok; /* it was read */
};
struct process_memory_batch {
	struct process_memory_part *parts;
	size_t count, room;
	uint64_t calls; /* system calls so far, for the benchmarks */
};
/* Adds a part; false: out of memory. */
bool process_memory_batch_add(struct process_memory_batch *batch, uint64_t address, void *out,
			      size_t bytes);
/* Reads all parts; .ok is false for a part that cannot be read. 0, or a negative errno: the process
   has ended or may not be read. */
int process_memory_batch_read(struct process_memory_batch *batch, pid_t pid);
void process_memory_batch_clear(struct process_memory_batch *batch);
void process_memory_batch_fini(struct process_memory_batch *batch);

/* Sets the command that error messages suggest (backtrace by default). The text is not copied. */
void process_memory_name_command(const char *name);
/* Explains why the memory of a process cannot be read, with a command that helps. code: a positive
   errno. */
int process_memory_refused(struct kymo_error *err, pid_t pid, int code);

#endif
