/* Memory of another process, read without stopping it. All that comes from there is hostile. */
#ifndef KYMO_COLLECT_REMOTE_H
#define KYMO_COLLECT_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/error.h"

/* All of it, or a negative errno. */
int remote_read(pid_t pid, uint64_t address, void *out, size_t bytes);
/* As much as there is: bytes read, or a negative errno. */
ssize_t remote_read_some(pid_t pid, uint64_t address, void *out, size_t bytes);
uint64_t remote_pointer(pid_t pid, uint64_t address); /* 0 where it cannot be read */

/* A word, and an int, of memory that was copied from there. */
static inline uint64_t remote_word(const void *bytes, int32_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)bytes + offset, 8);
	return value;
}
static inline int32_t remote_int(const void *bytes, int32_t offset)
{
	int32_t value;

	memcpy(&value, (const char *)bytes + offset, 4);
	return value;
}

/* Reads gathered and done by few system calls, in the order in which they were added. */
struct remote_part {
	uint64_t address;
	void *out;
	size_t bytes;
	bool ok; /* it was read */
};
struct remote_batch {
	struct remote_part *parts;
	size_t count, room;
	uint64_t calls; /* system calls so far, for the benchmarks */
};
/* Adds a part; false: no memory. */
bool remote_batch_add(struct remote_batch *batch, uint64_t address, void *out, size_t bytes);
/* Does them all; a part that cannot be read is marked, the others are read. 0, or a negative errno: the process is
   gone or may not be read. */
int remote_batch_read(struct remote_batch *batch, pid_t pid);
void remote_batch_clear(struct remote_batch *batch);
void remote_batch_fini(struct remote_batch *batch);

/* Which of our commands the sentences below speak of; text that stays. backtrace, unless told. */
void remote_name_command(const char *name);
/* Why memory of that process may not be read, with the command that helps. code: a positive errno. */
int remote_refused(struct kymo_error *err, pid_t pid, int code);

#endif
