/* The thread table: rows carry an index into it, because tids are reused. Append-only, no lock. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "record/record.h"

#define STEP_BYTES (256u * sizeof(struct kymo_thread_entry))

static struct kymo__mapfile file;

static struct kymo_threads_head *threads_head(void)
{
	return (struct kymo_threads_head *)(void *)file.base;
}

static struct kymo_thread_entry *threads_entry_at(uint32_t thread)
{
	return (struct kymo_thread_entry *)(void *)(file.base + sizeof(struct kymo_threads_head)) +
	       thread;
}

int kymo__threads_open(void)
{
	size_t heads = sizeof(struct kymo_threads_head);
	int rc;

	kymo__mapfile_close(&file); /* the parent's, after fork */
	rc = kymo__mapfile_create(&file, "threads",
				  heads + KYMO_THREADS_MAX * sizeof(struct kymo_thread_entry),
				  STEP_BYTES);
	if (rc)
		return rc;
	threads_head()->count = 1; /* 0: unknown */
	kymo__mapfile_begun(threads_head(), KYMO_MAGIC_THREADS, heads);
	return 0;
}

static uint32_t threads_entry_take(void)
{
	uint64_t index = kymo__load_relaxed(&threads_head()->count);
	size_t need;

	do {
		need = sizeof(struct kymo_threads_head) +
		       (index + 1) * sizeof(struct kymo_thread_entry);
		need = (need + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
		if (index >= KYMO_THREADS_MAX - 1 || kymo__mapfile_grow(&file, "threads", need))
			return 0;
	} while (!kymo__cas_relaxed(&threads_head()->count, &index, index + 1));
	return (uint32_t)index;
}

uint32_t kymo__thread_add(void)
{
	uint32_t index = threads_entry_take();
	struct kymo_thread_entry *entry;

	if (!index) {
		kymo__fetch_add_relaxed(&kymo__process.control->threads_full, 1);
		return 0;
	}
	entry = threads_entry_at(index);
	entry->tid = (int32_t)syscall(SYS_gettid);
	entry->started_ticks = kymo__ticks();
	prctl(PR_GET_NAME, entry->name);
	kymo__store_release(&entry->ready, 1);
	return index;
}

uint32_t kymo__thread_entry(const char *name)
{
	int kept_errno = errno; /* the program's */
	uint32_t thread = kymo__process_ready() ? kymo__thread_add() : 0;

	if (thread)
		kymo__thread_rename(thread, name);
	errno = kept_errno;
	return thread;
}

void kymo__thread_rename(uint32_t thread, const char *name)
{
	struct kymo_thread_entry *entry = threads_entry_at(thread);
	size_t bytes = kymo__utf8_cut(name, strlen(name), sizeof(entry->name) - 1);

	if (!thread)
		return;
	memset(entry->name, 0, sizeof(entry->name));
	memcpy(entry->name, name, bytes);
}

void kymo__thread_name_of(uint32_t thread, char out[KYMO_THREAD_NAME_BYTES])
{
	memcpy(out, threads_entry_at(thread)->name, KYMO_THREAD_NAME_BYTES);
	out[KYMO_THREAD_NAME_BYTES - 1] = '\0';
}

void kymo__thread_ended(uint32_t thread)
{
	if (thread)
		threads_entry_at(thread)->ended_ticks = kymo__ticks();
}
