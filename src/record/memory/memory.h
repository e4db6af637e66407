/*
 * libkymo_memory.so: allocations by call site, inside the program. It is preloaded by LD_PRELOAD
 * (`kymo run --memory`), where its malloc serves the whole program, or loaded into a running
 * program, where the calls of the loaded objects are redirected and later restored.
 *
 *	hooks.c   malloc and related functions   patch.c            redirects the calls of objects
 *	real.c    the real allocator             live_blocks.c      live blocks, by address
 *	switch.c  on, off and totals             allocation_rows.c  one allocation or free
 *	stack.c   call sites                     unwind.c           callers, by .eh_frame
 *	symbol.c  names of functions             walk_cache.c       callers of repeated stacks
 *
 * Like libkymo: no malloc, no locks, no threads, no signal handlers. Failures are counted and never
 * affect the program's allocations.
 */
#ifndef KYMO_RECORD_MEMORY_MEMORY_H
#define KYMO_RECORD_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#endif

#include <kymo/atomic.h>
#include <kymo/hot.h>

#include "base/schema.h"

/* ---- for kymo's extensions ------------------------------------------------------------------- */

enum kymo_memory_mode { KYMO_MEMORY_OFF, KYMO_MEMORY_SAMPLED, KYMO_MEMORY_EXACT };

#define KYMO_MEMORY_MEAN 65536u /* bytes between two samples */

struct kymo_memory_stats {
	/* since this watch began. When sampled, the first two are estimates; the last is counted,
	   except for at most 64 KiB of each other thread */
	int64_t live_bytes, peak_bytes, total_bytes;
	int64_t allocs, frees;
	int64_t rows; /* allocations recorded individually */
	double variance; /* of live_bytes, in bytes squared; 0: exact */
	double peak_variance; /* the same at the peak */
	uint64_t lost; /* allocations that could not be tracked */
	uint64_t foreign; /* frees of blocks allocated before; exact mode only */
	uint64_t peak_ticks;
	uint32_t mode;
	uint32_t preloaded;
};

/* An observer: a tracker. Zero it first; it may live anywhere but must stay until it is stopped. */
struct kymo_memory_watch {
	struct kymo_memory_stats base; /* at its start */
	int64_t peak_bytes;
	double peak_variance;
	uint64_t peak_ticks;
	uint32_t slot; /* from 1; 0: not on */
	uint32_t mode;
};

/* 0; -EAGAIN: too many watches at once; -ENOTSUP: calls cannot be redirected here (another
   libc). */
KYMO__EXPORT int kymo_memory_start(struct kymo_memory_watch *watch, enum kymo_memory_mode mode);
KYMO__EXPORT void kymo_memory_stop(struct kymo_memory_watch *watch);
KYMO__EXPORT void kymo_memory_read(const struct kymo_memory_watch *watch,
				   struct kymo_memory_stats *out);
/* Redirects again: objects may have been loaded in a way that is not watched. */
KYMO__EXPORT void kymo_memory_refresh(void);

/* A call site: bytes live now, live at the peak, and allocated since the program began. */
struct kymo_memory_site {
	uint32_t node;
	int64_t live_bytes, peak_bytes, total_bytes, allocs;
};
/* The sites by bytes live at the peak, largest first; returns the number of all sites. */
KYMO__EXPORT size_t kymo_memory_sites(struct kymo_memory_site *out, size_t most);
/* The frame of a node, and its caller's node; 0: none. Strings are NUL-terminated and may be
   truncated. */
KYMO__EXPORT uint32_t kymo_memory_frame(uint32_t node, char *name, size_t name_bytes, char *file,
					size_t file_bytes, uint32_t *line);

/* The last allocations and frees of the process. */
struct kymo_memory_event {
	uint64_t ticks;
	uint64_t ptr;
	uint64_t size;
	int64_t live_bytes;
	uint32_t node;
	uint32_t kind; /* 0 allocation, 1 free */
};
#define KYMO_MEMORY_EVENTS 32768u
/* Those in [from, from + most); *end is the number of all events so far. */
KYMO__EXPORT size_t kymo_memory_events(uint64_t from, struct kymo_memory_event *out, size_t most,
				       uint64_t *end);

/* For tests: from now on, cached walks are repeated. Returns how many gave the same result, and how
   many did not. */
KYMO__EXPORT void kymo_memory_check_walks(bool on, uint64_t *same, uint64_t *different);

/* Finds Python frames; provided by the extension for this Python version. Both functions are called
   in any thread, inside malloc: they must not lock or allocate. */
struct kymo_memory_frame_key {
	uint64_t key; /* equal for the same line of the same code */
	const void *code; /* NULL: `key` is a return address */
	int32_t place;
	uint32_t reserved;
};
struct kymo_memory_python {
	size_t bytes;
	size_t (*walk)(struct kymo_memory_frame_key *out, size_t most); /* innermost first */
	/* Texts without NUL; returns the line, or 0. */
	uint32_t (*name)(const struct kymo_memory_frame_key *frame, char *name, size_t *name_bytes,
			 char *file, size_t *file_bytes);
	/* the code that runs Python functions: native callers end there */
	uintptr_t eval_start, eval_end;
};
/* python must stay valid; NULL: none. */
KYMO__EXPORT void kymo_memory_python(const struct kymo_memory_python *python);

/* ---- inside ---------------------------------------------------------------------------------- */

/* Per thread. initial-exec, because any other model allocates inside malloc. */
struct memory_walks;
struct memory_thread {
	int64_t left; /* bytes until the next sample, or until `more` are taken */
	int64_t more;
	uint64_t random; /* 0: not seeded */
	int64_t told; /* value of `left` when its bytes were last counted */
	struct memory_walks *walks; /* walk_cache.c */
	uint8_t busy; /* our own code runs: this allocation is ours, or a signal handler's */
	/* a library was opened by name and its calls must be redirected: number of samples that
	   check for it */
	uint8_t scan;
};
extern __thread struct memory_thread memory_thread __attribute__((tls_model("initial-exec")));

/* enum kymo_memory_mode; relaxed: a change may be seen a little later. */
extern uint32_t memory_mode;

/* real.c: the allocator of the program without libkymo_memory. */
struct memory_real {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	void *(*reallocarray)(void *, size_t, size_t);
	void *(*mmap)(void *, size_t, int, int, int, long);
	int (*munmap)(void *, size_t);
	void *(*dlopen)(const char *, int);
	int (*dlclose)(void *);
};
extern struct memory_real memory_real;
extern bool memory_preloaded __attribute__((visibility("hidden")));
extern const void *memory_recorder; /* inside libkymo; NULL until our constructor has run */
bool memory_real_find(void); /* false: not yet */
void *memory_early(size_t bytes, size_t align); /* for requests before it is found */
#define MEMORY_EARLY_BYTES 65536
extern char memory_early_room[MEMORY_EARLY_BYTES] __attribute__((visibility("hidden")));
static inline bool memory_is_early(const void *ptr) /* at each free: no call */
{
	return (uintptr_t)ptr - (uintptr_t)memory_early_room < MEMORY_EARLY_BYTES;
}
size_t memory_early_bytes(const void *ptr);
/* Whether it is code of the allocator itself, whose mappings contain the blocks of malloc. */
bool memory_in_allocator(const void *address);

/* Words that many threads change. In a single-threaded program no lock prefix is needed: one
   instruction is atomic with respect to signal handlers. The thread that starts the second thread
   is the only one then, so changing over is safe. */
#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#define MEMORY_ALONE __libc_single_threaded
static inline int64_t memory_add(int64_t *word, int64_t change)
{
	int64_t before = change;

	if (!MEMORY_ALONE)
		return kymo__add_fetch_relaxed(word, change);
	__asm__ volatile("xaddq %0, %1" : "+r"(before), "+m"(*word) : : "cc");
	return before + change;
}
/* True: it was `expected`, and is now `wanted`. */
static inline bool memory_swap(int64_t *word, int64_t *expected, int64_t wanted)
{
	bool done;

	if (!MEMORY_ALONE)
		return kymo__cas_weak_relaxed(word, expected, wanted);
	__asm__ volatile("cmpxchgq %3, %1"
			 : "+a"(*expected), "+m"(*word), "=@cce"(done)
			 : "r"(wanted)
			 : "cc");
	return done;
}
#else
#define MEMORY_ALONE 0
static inline int64_t memory_add(int64_t *word, int64_t change)
{
	return kymo__add_fetch_relaxed(word, change);
}
static inline bool memory_swap(int64_t *word, int64_t *expected, int64_t wanted)
{
	return kymo__cas_weak_relaxed(word, expected, wanted);
}
#endif

/* live_blocks.c: an entry for each address; 0: none. Only the thread that holds the memory writes
   its entry. */
#define MEMORY_SIZE_BITS SCHEMA_ALLOC_NODE_SHIFT
#define MEMORY_SIZE_MASK SCHEMA_ALLOC_SIZE_MASK
#define MEMORY_SAMPLED (1ull << 63) /* the entry stands for more than itself */
bool memory_live_put(const void *ptr, uint64_t entry);
uint64_t memory_live_take(const void *ptr);
void memory_live_clear(void);
void memory_live_unfilter(void); /* from now on every address may have an entry */
/* Counts entries by hash of the address: 0 means none. Not used in exact mode, where every address
   has one. */
extern uint8_t memory_filter[1u << 15];
static inline uint32_t memory_filter_of(const void *ptr)
{
	return (uint32_t)(((uintptr_t)ptr >> 4) * 0x9E3779B97F4A7C15ull >> 49);
}

/* A return address, with the stack and frame pointers after the return. */
struct memory_place {
	uintptr_t pc;
	uintptr_t sp; /* 0: not known */
	uintptr_t bp;
};

/* allocation_rows.c: call it after the real allocation and before the real free. */
void memory_allocated(void *ptr, size_t bytes, bool mapped, const struct memory_place *caller);
void memory_freed(const void *ptr);
bool memory_sample_due(size_t bytes); /* the thread's counter has run out */
void memory_tell_passed(void); /* counts the bytes this thread has allocated since the last call */
/* Takes the entry of a block that may move; memory_stayed() puts it back if it did not. */
uint64_t memory_moving(const void *ptr);
void memory_stayed(const void *ptr, uint64_t entry);
void memory_moved(const void *from, uint64_t entry);

/* switch.c */
void memory_passed(int64_t bytes); /* adds allocated bytes */
/* parts: MEMORY_FRACTION parts are one allocation, because a sample may stand for 2.3 of them;
   below 0: freed. */
#define MEMORY_FRACTION 256
void memory_count(uint32_t node, int64_t bytes, int64_t variance, int64_t parts, uint64_t ticks);
void memory_event(uint64_t ticks, const void *ptr, uint64_t size, uint32_t node, uint32_t kind,
		  int64_t live);
int64_t memory_live_bytes(void);
void memory_lost(void);
void memory_foreign(void);
void memory_announce(void);
/* Apply the request of `kymo config`. The first is for when nothing is watched; true: this
   allocation is recorded. */
bool memory_follow_switch(void);
void memory_follow_switch_off(void);
void memory_row(uint32_t kind, uint64_t what);
uint32_t memory_generation(void); /* incremented by each fork and each start */

/* stack.c */
#define MEMORY_NODES (1u << 18)
struct memory_node {
	uint64_t key;
	uint32_t parent, name, line, written; /* the generation whose recording contains it */
	int64_t live, at_peak, total, count, epoch;
} __attribute__((aligned(64))); /* one cache line per allocation and free */
uint32_t memory_stack(bool mapped, const struct memory_place *caller); /* from 1; 1: no room */
struct memory_node *memory_node(uint32_t node); /* NULL: there is none */
uint32_t memory_node_count(void);
void memory_stack_forget_names(void); /* code was unloaded */
void memory_stack_write(uint32_t node); /* writes its frames to the recording, once */

/* unwind.c: return addresses, innermost first, starting at a place (NULL: at memory_unwind()'s
   caller), without our own frames. It ends before an address in [stop_start, stop_end). */
size_t memory_unwind(const struct memory_place *from, uintptr_t *out, size_t most,
		     uintptr_t stop_start, uintptr_t stop_end);
/* One step from a place to its caller's; false: there is none. Records which words the step used
   and their addresses; 0: none. */
struct memory_step {
	uintptr_t cfa_slot, cfa, bp_slot, pc_slot;
	bool uses_bp;
	bool passes_bp; /* the caller has the same frame pointer */
};
bool memory_unwind_step(struct memory_place *place, struct memory_step *how);
bool memory_unwind_is_ours(uintptr_t pc);
void memory_unwind_forget(void); /* code was unloaded */
uint32_t memory_unwind_age(void); /* number of such unloads */

/* walk_cache.c: a hash of the result of memory_unwind(); NULL: memory_unwind() must be called. */
#define MEMORY_NATIVE_MOST 48
struct memory_walk {
	uint64_t hash;
	uint64_t stack_hash; /* for stack.c: the last stack that contained it, and its node */
	uint32_t stack_node;
};
struct memory_walk *memory_walk(const struct memory_place *from, uintptr_t stop_start,
				uintptr_t stop_end);
uint64_t memory_walk_hash(const uintptr_t *addresses, size_t count);

/* symbol.c: the function at that address, and the object ("": unknown). The name is in the object's
   file, which stays mapped, because C++ names may be long and stacks small. If there is none, one
   is made. */
const char *memory_symbol(uintptr_t address, char *made, size_t made_bytes, char *path,
			  size_t path_bytes);

/* patch.c */
int memory_patch(bool on);
bool memory_patch_new(void); /* only if objects were loaded since; true: done */

/* hooks.c: the replacement functions. */
struct memory_hook {
	const char *name;
	void *function;
};
extern const struct memory_hook memory_hooks[];

#endif
