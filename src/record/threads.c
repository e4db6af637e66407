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

/* ---- names of other threads ---------------------------------------------------------------- */

#define PENDING_MOST 64u

/* Names of threads that have no entry yet. More than these are lost. */
static struct pending_name {
	int32_t tid; /* 0: free; -1: in use by a thread; atomic */
	char name[KYMO_THREAD_NAME_BYTES];
} pending[PENDING_MOST];
static uint32_t pending_count; /* a hint; atomic */

static bool pending_take(struct pending_name *slot, int32_t tid)
{
	return kymo__load_relaxed(&slot->tid) == tid && kymo__cas_acquire(&slot->tid, &tid, -1);
}

static void pending_fill(struct pending_name *slot, int32_t tid, const char *name)
{
	size_t bytes = kymo__utf8_cut(name, strlen(name), sizeof(slot->name) - 1);

	memset(slot->name, 0, sizeof(slot->name));
	memcpy(slot->name, name, bytes);
	kymo__store_release(&slot->tid, tid);
}

/* Replaces an earlier name of the thread. */
static void pending_add(int32_t tid, const char *name)
{
	for (uint32_t i = 0; i < PENDING_MOST; i++)
		if (pending_take(&pending[i], tid)) {
			pending_fill(&pending[i], tid, name);
			return;
		}
	for (uint32_t i = 0; i < PENDING_MOST; i++)
		if (pending_take(&pending[i], 0)) {
			kymo__add_fetch_relaxed(&pending_count, 1);
			pending_fill(&pending[i], tid, name);
			return;
		}
}

/* The name that another thread gave to the one of this new entry. */
static void pending_apply(struct kymo_thread_entry *entry)
{
	for (uint32_t i = 0; i < PENDING_MOST && kymo__load_relaxed(&pending_count); i++)
		if (pending_take(&pending[i], entry->tid)) {
			memcpy(entry->name, pending[i].name, sizeof(entry->name));
			kymo__store_release(&pending[i].tid, 0);
			kymo__fetch_sub_relaxed(&pending_count, 1);
			return;
		}
}

/* The lane of a thread's ranges keeps its suffix. */
static void threads_rename_other(uint32_t thread, const char *name)
{
	static const char suffix[] = KYMO_RANGES_SUFFIX;
	char old[KYMO_THREAD_NAME_BYTES], text[KYMO_THREAD_NAME_BYTES];
	size_t bytes, room;

	kymo__thread_name_of(thread, old);
	bytes = strlen(old);
	if (bytes < sizeof(suffix) - 1 || strcmp(old + bytes - (sizeof(suffix) - 1), suffix) != 0) {
		kymo__thread_rename(thread, name);
		return;
	}
	room = kymo__utf8_cut(name, strlen(name), sizeof(text) - sizeof(suffix));
	memcpy(text, name, room);
	memcpy(text + room, suffix, sizeof(suffix));
	kymo__thread_rename(thread, text);
}

void kymo_thread_name_tid(int32_t tid, const char *name)
{
	bool found = false;

	if (!name || tid <= 0 || !kymo_enabled() || !kymo__process_ready())
		return;
	if (tid == (int32_t)syscall(SYS_gettid)) {
		kymo_thread_name(name);
		return;
	}
	for (uint64_t i = kymo__load_acquire(&threads_head()->count); i-- > 1;) {
		const struct kymo_thread_entry *entry = threads_entry_at((uint32_t)i);

		if (kymo__load_acquire(&entry->ready) && entry->tid == tid && !entry->ended_ticks) {
			threads_rename_other((uint32_t)i, name);
			found = true;
		}
	}
	if (!found)
		pending_add(tid, name);
}

/* ---- entries ------------------------------------------------------------------------------- */

int kymo__threads_open(void)
{
	size_t heads = sizeof(struct kymo_threads_head);
	int rc;

	kymo__mapfile_close(&file); /* the parent's, after fork */
	memset(pending, 0, sizeof(pending));
	pending_count = 0;
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
	pending_apply(entry);
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
