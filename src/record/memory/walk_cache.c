/*
 * Reuses the results of earlier walks. A walk is determined by its start and by the words it loads
 * from the stack. Both are kept for a thread's last walks: a walk with the same start and words has
 * the same result, and is skipped. The words are compared in the order in which the walk would load
 * them, so no word is read that the walk would not read.
 */
#include "record/memory/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/atomic.h>

#define THREADS 4096u
#define SETS 64u
#define WAYS 4u /* walks with the same start */
#define STEPS 64u
#define WORDS 100u

struct zone_walk {
	struct memory_walk found; /* hash: 0 if unusable */
	struct memory_place from;
	uintptr_t stop_start;
	uint32_t age, word_count;
	bool needs_bp; /* where it begins */
	struct word {
		int64_t offset; /* from where it begins */
		uintptr_t value;
	} words[WORDS];
};

struct memory_walks {
	struct zone_walk walks[SETS][WAYS];
	uint32_t next_way; /* the next to be replaced */
	struct {
		struct memory_step how;
		struct memory_place to;
	} steps[STEPS]; /* of the walk being recorded */
};

/* By the address of its thread-local variables: a later thread at the same address takes it
   over. */
static struct {
	uintptr_t owner;
	struct memory_walks *walks;
} threads[THREADS];

static struct memory_walks *walk_cache_map(void)
{
	long at = syscall(SYS_mmap, NULL, sizeof(struct memory_walks), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

	return at < 0 && at > -4096 ? NULL : (struct memory_walks *)at;
}

static __attribute__((noinline)) struct memory_walks *walks_of_thread(void)
{
	uintptr_t self = (uintptr_t)&memory_thread;
	uint32_t at = (uint32_t)(self * 0x9E3779B97F4A7C15ull >> 52);

	for (unsigned i = 0; i < 64; i++, at = (at + 1) % THREADS) {
		uintptr_t owner = kymo__load_relaxed(&threads[at].owner);

		if (!owner && kymo__cas_relaxed(&threads[at].owner, &owner, self))
			owner = self;
		if (owner != self)
			continue;
		if (!threads[at].walks)
			threads[at].walks = walk_cache_map();
		return memory_thread.walks = threads[at].walks;
	}
	return NULL;
}

/* ---- recording a walk ------------------------------------------------------------------------ */

uint64_t memory_walk_hash(const uintptr_t *addresses, size_t count)
{
	uint64_t hash = count;

	for (size_t i = 0; i < count; i++) {
		uint64_t mixed = addresses[i] * 0x9E3779B97F4A7C15ull;

		hash = hash * 0xD1342543DE82EF95ull + (mixed ^ mixed >> 32);
	}
	return hash ? hash : 1;
}

/* All steps, and the addresses memory_unwind() would find. */
static uint32_t take_steps(struct memory_walks *walks, struct zone_walk *walk, uintptr_t stop_end)
{
	uintptr_t found[MEMORY_NATIVE_MOST];
	struct memory_place place = walk->from;
	uint32_t steps = 0, count = 0;
	bool goes_on = true;

	while (goes_on && place.pc - walk->stop_start >= stop_end - walk->stop_start) {
		if (!memory_unwind_is_ours(place.pc))
			found[count++] = place.pc;
		if (count == MEMORY_NATIVE_MOST)
			break;
		if (steps == STEPS) {
			count = 0; /* impossibly many of our own frames */
			break;
		}
		goes_on = memory_unwind_step(&place, &walks->steps[steps].how);
		walks->steps[steps++].to = place;
	}
	walk->found.hash = count ? memory_walk_hash(found, count) : 0;
	return steps;
}

static void walk_cache_put_word(struct zone_walk *walk, uintptr_t slot, uintptr_t value)
{
	if (!slot)
		return;
	if (walk->word_count == WORDS) {
		walk->found.hash = 0;
		return;
	}
	walk->words[walk->word_count++] = (struct word){ (int64_t)(slot - walk->from.sp), value };
}

/* A frame pointer that no step uses may be any number: it is not compared. */
static void put_words(struct memory_walks *walks, struct zone_walk *walk, uint32_t steps)
{
	bool needs_bp[STEPS + 1];

	needs_bp[steps] = false;
	for (uint32_t i = steps; i-- > 0;)
		needs_bp[i] = walks->steps[i].how.uses_bp ||
			      (walks->steps[i].how.passes_bp && needs_bp[i + 1]);
	walk->needs_bp = needs_bp[0];
	walk->word_count = 0;
	for (uint32_t i = 0; i < steps; i++) {
		const struct memory_step *how = &walks->steps[i].how;

		walk_cache_put_word(walk, how->cfa_slot, how->cfa);
		if (needs_bp[i + 1])
			walk_cache_put_word(walk, how->bp_slot, walks->steps[i].to.bp);
		walk_cache_put_word(walk, how->pc_slot, walks->steps[i].to.pc);
	}
}

/* ---- finding a walk -------------------------------------------------------------------------- */

static inline bool begins_alike(const struct zone_walk *walk, const struct memory_place *from,
				uintptr_t stop_start)
{
	return walk->from.sp == from->sp && walk->from.pc == from->pc && walk->found.hash &&
	       (!walk->needs_bp || walk->from.bp == from->bp) && walk->stop_start == stop_start &&
	       walk->age == memory_unwind_age();
}

static inline bool finds_the_same(const struct zone_walk *walk)
{
	uintptr_t sp = walk->from.sp;

	for (uint32_t i = 0; i < walk->word_count; i++)
		if (*(const uintptr_t *)(sp + (uintptr_t)walk->words[i].offset) !=
		    walk->words[i].value)
			return false;
	return true;
}

static struct {
	bool on;
	uint64_t same, different;
} checks;

void kymo_memory_check_walks(bool on, uint64_t *same, uint64_t *different)
{
	*same = kymo__load_relaxed(&checks.same);
	*different = kymo__load_relaxed(&checks.different);
	kymo__store_relaxed(&checks.on, on);
}

/* From the hook's caller, and from here through our own frames. */
static __attribute__((noinline)) void walk_cache_check(const struct zone_walk *walk,
						       uintptr_t stop_end)
{
	uintptr_t found[MEMORY_NATIVE_MOST];
	size_t count = memory_unwind(&walk->from, found, MEMORY_NATIVE_MOST, walk->stop_start,
				     stop_end);
	bool same = memory_walk_hash(found, count) == walk->found.hash;

	count = memory_unwind(NULL, found, MEMORY_NATIVE_MOST, walk->stop_start, stop_end);
	same &= memory_walk_hash(found, count) == walk->found.hash;
	kymo__fetch_add_relaxed(same ? &checks.same : &checks.different, 1);
}

static __attribute__((noinline)) struct memory_walk *walk_cache_make(
	struct memory_walks *walks, struct zone_walk *walk, const struct memory_place *from,
	uintptr_t stop_start, uintptr_t stop_end)
{
	walk->from = *from;
	walk->stop_start = stop_start;
	walk->age = memory_unwind_age();
	put_words(walks, walk, take_steps(walks, walk, stop_end));
	walk->found.stack_node = 0;
	return walk->found.hash ? &walk->found : NULL;
}

struct memory_walk *memory_walk(const struct memory_place *from, uintptr_t stop_start,
				uintptr_t stop_end)
{
	struct memory_walks *walks = memory_thread.walks;
	struct zone_walk *set;

	if (!from->sp || (!walks && !(walks = walks_of_thread())))
		return NULL;
	set = walks->walks[(from->pc ^ from->sp << 7) * 0x9E3779B97F4A7C15ull >> 58];
	for (uint32_t i = 0; i < WAYS; i++)
		if (begins_alike(&set[i], from, stop_start) && finds_the_same(&set[i])) {
			if (KYMO__UNLIKELY(kymo__load_relaxed(&checks.on)))
				walk_cache_check(&set[i], stop_end);
			return &set[i].found;
		}
	return walk_cache_make(walks, &set[walks->next_way++ % WAYS], from, stop_start, stop_end);
}
