/*
 * The replacements of malloc and related functions. Exported under their names for LD_PRELOAD; in a
 * running program, calls are redirected here (patch.c). They also work while nothing is recorded: a
 * call may be in flight when recording is turned off.
 */
#undef _FILE_OFFSET_BITS /* or mmap has another name */

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "record/memory/memory.h"

/* Samples after dlopen that check for a new object: it may have been loaded before. */
#define SCANS 16
#define CALLER __builtin_return_address(0)
#define EXPORT(name) __attribute__((visibility("default"), alias(#name)))

__thread struct memory_thread memory_thread __attribute__((tls_model("initial-exec")));
uint32_t memory_mode;

static inline uint32_t mode(void)
{
	return kymo__load_relaxed(&memory_mode);
}

/* For the function it is used in, which then has a frame pointer; for the hooks and their tail
   calls. */
#define PLACE hooks_place_of(__builtin_frame_address(0), CALLER)

static inline struct memory_place hooks_place_of(const uintptr_t *frame, const void *caller)
{
	struct memory_place place = { (uintptr_t)caller, 0, 0 };

#if defined(__x86_64__)
	if (frame[1] == place.pc) {
		place.sp = (uintptr_t)(frame + 2);
		place.bp = frame[0];
	}
#else
	(void)frame;
#endif
	return place;
}

/* Whether this allocation is recorded. Usually not, after one subtraction. */
static inline bool hooks_is_due(size_t bytes)
{
	uint32_t now = mode();

	if (KYMO__LIKELY(now == KYMO_MEMORY_SAMPLED))
		return KYMO__UNLIKELY((memory_thread.left -= (int64_t)bytes) <= 0) &&
		       memory_sample_due(bytes);
	if (KYMO__LIKELY(now == KYMO_MEMORY_OFF))
		return memory_preloaded && kymo__is_on(KYMO_ON_ALLOC) && memory_follow_switch();
	return now == KYMO_MEMORY_EXACT;
}

/* Whether that memory may have an entry. */
static inline bool hooks_is_known(const void *ptr)
{
	return mode() != KYMO_MEMORY_OFF && ptr &&
	       (mode() == KYMO_MEMORY_EXACT || memory_filter[memory_filter_of(ptr)]);
}

static inline bool is_ready(void)
{
	return KYMO__LIKELY(memory_real.malloc != NULL) || memory_real_find();
}

/* The two hottest functions keep no frame: everything but the jump to the real function is
   elsewhere. */
static inline bool is_quiet(size_t bytes)
{
	uint32_t now = mode();

	if (KYMO__LIKELY(now == KYMO_MEMORY_SAMPLED))
		return (memory_thread.left -= (int64_t)bytes) > 0;
	return now == KYMO_MEMORY_OFF && (!memory_preloaded || !kymo__is_on(KYMO_ON_ALLOC));
}

/* Like hooks_is_due(), after the subtraction. */
static bool is_due_now(size_t bytes)
{
	if (mode() == KYMO_MEMORY_SAMPLED)
		return memory_thread.left <= 0 && memory_sample_due(bytes);
	return hooks_is_due(bytes);
}

static __attribute__((noinline)) void *malloc_slow(size_t bytes, const void *caller)
{
	struct memory_place place = hooks_place_of(__builtin_frame_address(0), caller);
	bool due;
	void *ptr;

	if (!is_ready())
		return memory_early(bytes, 16);
	due = is_due_now(bytes);
	ptr = memory_real.malloc(bytes);
	if (ptr && due)
		memory_allocated(ptr, bytes, false, &place);
	return ptr;
}

static void *hook_malloc(size_t bytes)
{
	if (KYMO__LIKELY(memory_real.malloc && is_quiet(bytes)))
		return memory_real.malloc(bytes);
	return malloc_slow(bytes, CALLER);
}

static __attribute__((noinline)) void free_slow(void *ptr)
{
	if (hooks_is_known(ptr))
		memory_freed(ptr);
	if (!memory_is_early(ptr) && is_ready())
		/* is_ready() has found it. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
		memory_real.free(ptr);
}

static void hook_free(void *ptr)
{
	if (KYMO__LIKELY(!hooks_is_known(ptr) && !memory_is_early(ptr) && memory_real.free))
		memory_real.free(ptr);
	else
		free_slow(ptr);
}

static __attribute__((noinline)) void *calloc_followed(size_t count, size_t each,
						       const void *caller)
{
	struct memory_place place = hooks_place_of(__builtin_frame_address(0), caller);
	void *ptr = memory_real.calloc(count, each);

	if (ptr)
		memory_allocated(ptr, count * each, false, &place);
	return ptr;
}

static void *hook_calloc(size_t count, size_t each)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (KYMO__UNLIKELY(!is_ready()))
		return memory_early(bytes, 16); /* never used before: zero */
	if (KYMO__LIKELY(!hooks_is_due(bytes)))
		return memory_real.calloc(count, each);
	return calloc_followed(count, each, CALLER);
}

/* Early memory cannot grow; it is copied. */
static void *early_realloc(void *old, size_t bytes)
{
	void *ptr = is_ready() ? memory_real.malloc(bytes) : memory_early(bytes, 16);
	size_t before = memory_early_bytes(old);

	if (ptr)
		memcpy(ptr, old, before < bytes ? before : bytes);
	return ptr;
}

/* The old entry is removed before the call: another thread may get its address the moment the block
   has moved. */
static __attribute__((noinline)) void *realloc_followed(void *old, size_t bytes, bool due,
							const void *caller)
{
	struct memory_place place = hooks_place_of(__builtin_frame_address(0), caller);
	uint64_t entry = memory_moving(old);
	void *ptr = memory_real.realloc(old, bytes);
	bool gone = ptr || !bytes;

	if (entry && gone)
		memory_moved(old, entry);
	else if (entry)
		memory_stayed(old, entry);
	if (ptr && due)
		memory_allocated(ptr, bytes, false, &place);
	return ptr;
}

static inline void *realloc_from(void *old, size_t bytes, const void *caller)
{
	bool due;

	if (KYMO__UNLIKELY(memory_is_early(old)))
		return early_realloc(old, bytes);
	if (KYMO__UNLIKELY(!is_ready()))
		return memory_early(bytes, 16);
	due = hooks_is_due(bytes);
	if (KYMO__LIKELY(!due && !hooks_is_known(old)))
		return memory_real.realloc(old, bytes);
	return realloc_followed(old, bytes, due, caller);
}

static void *hook_realloc(void *old, size_t bytes)
{
	return realloc_from(old, bytes, CALLER);
}

static void *hook_reallocarray(void *old, size_t count, size_t each)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc_from(old, bytes, CALLER);
}

static int hook_posix_memalign(void **out, size_t align, size_t bytes)
{
	struct memory_place place = PLACE;
	int rc;

	if (KYMO__UNLIKELY(!is_ready())) {
		*out = memory_early(bytes, align);
		return *out ? 0 : ENOMEM;
	}
	rc = memory_real.posix_memalign(out, align, bytes);
	if (KYMO__UNLIKELY(!rc && *out && hooks_is_due(bytes)))
		memory_allocated(*out, bytes, false, &place);
	return rc;
}

#define ALIGNED(function, arguments, pass, align, bytes) \
	static void *hook_##function arguments \
	{ \
		struct memory_place place = PLACE; \
		void *ptr; \
\
		if (KYMO__UNLIKELY(!is_ready())) \
			return memory_early(bytes, align); \
		ptr = memory_real.function pass; \
		if (KYMO__UNLIKELY(ptr && hooks_is_due(bytes))) \
			memory_allocated(ptr, bytes, false, &place); \
		return ptr; \
	}

ALIGNED(aligned_alloc, (size_t align, size_t bytes), (align, bytes), align, bytes)
ALIGNED(memalign, (size_t align, size_t bytes), (align, bytes), align, bytes)
ALIGNED(valloc, (size_t bytes), (bytes), 4096, bytes)
ALIGNED(pvalloc, (size_t bytes), (bytes), 4096, bytes)

/* Anonymous memory is counted by its size; the allocator's own mappings are counted by their
   blocks. */
static void *hook_mmap(void *at, size_t bytes, int protection, int flags, int fd, long offset)
{
	struct memory_place place = PLACE;
	void *ptr;

	if (KYMO__UNLIKELY(!is_ready()))
		return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
	ptr = memory_real.mmap(at, bytes, protection, flags, fd, offset);
	if (ptr != MAP_FAILED && (flags & MAP_ANONYMOUS) && (protection & PROT_WRITE) &&
	    !memory_in_allocator(CALLER) && hooks_is_due(bytes))
		memory_allocated(ptr, bytes, true, &place);
	return ptr;
}

static int hook_munmap(void *at, size_t bytes)
{
	if (KYMO__UNLIKELY(hooks_is_known(at)))
		memory_freed(at);
	if (KYMO__UNLIKELY(!is_ready()))
		return (int)syscall(SYS_munmap, at, bytes);
	return memory_real.munmap(at, bytes);
}

/* A name without a slash is resolved by the caller's own search paths, so the call must appear to
   come from the caller: it continues as a jump, and calls of new objects are redirected at this
   thread's next sample. */
static void *hook_dlopen(const char *name, int flags)
{
	void *handle;

	if (!name || !strchr(name, '/')) {
		memory_thread.scan = SCANS;
		return memory_real.dlopen(name, flags);
	}
	handle = memory_real.dlopen(name, flags);
	if (handle && mode() != KYMO_MEMORY_OFF)
		kymo_memory_refresh();
	return handle;
}

static int hook_dlclose(void *handle)
{
	int rc = memory_real.dlclose(handle);

	memory_unwind_forget();
	memory_stack_forget_names();
	return rc;
}

/* Used by patch.c and real.c; malloc is the first. */
const struct memory_hook memory_hooks[] = {
	{ "malloc", (void *)hook_malloc },
	{ "free", (void *)hook_free },
	{ "calloc", (void *)hook_calloc },
	{ "realloc", (void *)hook_realloc },
	{ "cfree", (void *)hook_free },
	{ "posix_memalign", (void *)hook_posix_memalign },
	{ "aligned_alloc", (void *)hook_aligned_alloc },
	{ "memalign", (void *)hook_memalign },
	{ "valloc", (void *)hook_valloc },
	{ "pvalloc", (void *)hook_pvalloc },
	{ "reallocarray", (void *)hook_reallocarray },
	{ "mmap", (void *)hook_mmap },
	{ "mmap64", (void *)hook_mmap },
	{ "munmap", (void *)hook_munmap },
	{ "dlopen", (void *)hook_dlopen },
	{ "dlclose", (void *)hook_dlclose },
	{ NULL, NULL },
};

void *malloc(size_t bytes) EXPORT(hook_malloc);
void free(void *ptr) EXPORT(hook_free);
void *calloc(size_t count, size_t each) EXPORT(hook_calloc);
void *realloc(void *old, size_t bytes) EXPORT(hook_realloc);
int posix_memalign(void **out, size_t align, size_t bytes) EXPORT(hook_posix_memalign);
void *aligned_alloc(size_t align, size_t bytes) EXPORT(hook_aligned_alloc);
void *memalign(size_t align, size_t bytes) EXPORT(hook_memalign);
void *valloc(size_t bytes) EXPORT(hook_valloc);
void *pvalloc(size_t bytes) EXPORT(hook_pvalloc);
void *reallocarray(void *old, size_t count, size_t each) EXPORT(hook_reallocarray);
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, long offset)
	EXPORT(hook_mmap);
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, long offset)
	EXPORT(hook_mmap);
int munmap(void *at, size_t bytes) EXPORT(hook_munmap);
