/* One allocation or free: its site, its entry, its row. */
#include "record/memory/memory.h"

#include <errno.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/schema.h"
#include "record/adapter.h"
#include "record/record.h"

/* ---- sampling -------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1Dull;
}

/* -ln(u) of a u in (0, 1], without libm: exponent from the bits, and a series. */
static double minus_log(uint64_t random)
{
	union {
		double real;
		uint64_t bits;
	} u = { .real = (double)((random >> 11) + 1) * 0x1p-53 };
	int exponent = (int)(u.bits >> 52) - 1023;
	double s, square;

	u.bits = (u.bits & 0xfffffffffffffull) | 1023ull << 52;
	s = (u.real - 1.0) / (u.real + 1.0);
	square = s * s;
	s *= 2.0 +
	     square * (2.0 / 3 +
		       square * (2.0 / 5 +
				 square * (2.0 / 7 +
					   square * (2.0 / 9 +
						     square * (2.0 / 11 + square * (2.0 / 13))))));
	return -(s + exponent * 0.69314718055994530942);
}

static int64_t draw(struct memory_thread *thread)
{
	return (int64_t)(minus_log(next_random(&thread->random)) * KYMO_MEMORY_MEAN) + 1;
}

/* At most the mean at a time: so every allocation of that size gets here, even if the next sample
   is far. */
static void take_part(struct memory_thread *thread, int64_t bytes)
{
	int64_t part = bytes < KYMO_MEMORY_MEAN ? bytes : KYMO_MEMORY_MEAN;

	thread->left += part;
	thread->more = bytes - part;
}

/* The probability that an allocation of that size is sampled: 1 - exp(-x), for x below 1. */
static double chance(uint64_t bytes)
{
	double x = (double)bytes / KYMO_MEMORY_MEAN, term = x, sum = x;

	for (int i = 2; i < 18; i++) {
		term *= -x / i;
		sum += term;
	}
	return sum;
}

static void allocation_rows_begin(struct memory_thread *thread)
{
	thread->random = kymo__ticks() ^ ((uint64_t)(uintptr_t)thread << 20) ^
			 ((uint64_t)getpid() << 40) ^ 0x9E3779B97F4A7C15ull;
	if (!thread->random)
		thread->random = 1;
	for (int i = 0; i < 4; i++)
		next_random(&thread->random);
}

/* The decrease of the thread's counter is exactly what was allocated, recorded or not. */
void memory_tell_passed(void)
{
	struct memory_thread *thread = &memory_thread;

	memory_passed(thread->told - thread->left);
	thread->told = thread->left;
}

static bool is_sample(struct memory_thread *thread, size_t bytes)
{
	if (!thread->random) { /* its first */
		allocation_rows_begin(thread);
		thread->left = 0;
		take_part(thread, draw(thread));
		if (bytes < KYMO_MEMORY_MEAN)
			thread->left -= (int64_t)bytes;
	} else if (bytes >= KYMO_MEMORY_MEAN) {
		thread->left += (int64_t)bytes; /* always recorded, not by chance */
	}
	if (bytes >= KYMO_MEMORY_MEAN)
		return true;
	while (thread->left <= 0 && thread->more > 0)
		take_part(thread, thread->more);
	if (thread->left > 0)
		return false;
	/* The distribution is memoryless: it starts over where this sample ends. */
	thread->left = 0;
	take_part(thread, draw(thread));
	return bytes > 0;
}

bool memory_sample_due(size_t bytes)
{
	struct memory_thread *thread = &memory_thread;
	bool due;

	if (thread->busy)
		return false;
	memory_tell_passed();
	due = is_sample(thread, bytes);
	thread->told = thread->left;
	return due;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static __attribute__((noinline)) void write_slowly(uint64_t ticks, uint64_t place, uint64_t what)
{
	struct schema_alloc_row row = { ticks, place, what };

	_Static_assert(sizeof(row) == 24, "three words");
	kymo__append(SCHEMA_ALLOC, &row);
}

static void allocation_rows_write_row(uint64_t ticks, uint32_t kind, const void *ptr,
				      uint64_t entry)
{
	struct kymo__lane *lane = kymo__lane ? kymo__lane : kymo__lane_get();
	uint64_t thread = lane ? lane->thread : 0, what = entry & ~MEMORY_SAMPLED;
	uint64_t place = ((uintptr_t)ptr & SCHEMA_ALLOC_PTR_MASK) | kind |
			 (thread < 0xffff ? thread : 0xffff) << SCHEMA_ALLOC_THREAD_SHIFT;

	if (!kymo_enabled() || !kymo__append_three(SCHEMA_ALLOC, ticks, place, what))
		write_slowly(ticks, place, what);
}

void memory_row(uint32_t kind, uint64_t what)
{
	allocation_rows_write_row(kymo__ticks(), kind, NULL, what);
}

/* Counts what an entry represents. */
static void count(uint64_t entry, int sign, uint64_t ticks)
{
	uint64_t bytes = entry & MEMORY_SIZE_MASK;
	uint32_t node = (uint32_t)(entry >> MEMORY_SIZE_BITS & 0x7fffff);
	double p, weight;

	if (!(entry & MEMORY_SAMPLED)) { /* itself */
		memory_count(node, sign * (int64_t)bytes, 0, sign * MEMORY_FRACTION, ticks);
		return;
	}
	p = chance(bytes);
	weight = (double)bytes / p;
	memory_count(node, sign * (int64_t)(weight + 0.5),
		     (int64_t)(sign * weight * weight * (1 - p)),
		     (int64_t)(sign / p * MEMORY_FRACTION), ticks);
}

static void allocation_rows_put(void *ptr, uint64_t entry)
{
	uint32_t node = (uint32_t)(entry >> MEMORY_SIZE_BITS & 0x7fffff);
	bool sampled = entry & MEMORY_SAMPLED;
	uint64_t ticks;

	if (!memory_live_put(ptr, entry)) {
		memory_lost();
		return;
	}
	ticks = kymo__ticks();
	count(entry, 1, ticks);
	memory_event(ticks, ptr, entry & MEMORY_SIZE_MASK, node, 0, memory_live_bytes());
	memory_stack_write(node);
	allocation_rows_write_row(ticks, sampled ? SCHEMA_ALLOC_SAMPLED : SCHEMA_ALLOC_EXACT, ptr,
				  entry);
}

void memory_allocated(void *ptr, size_t bytes, bool mapped, const struct memory_place *caller)
{
	struct memory_thread *thread = &memory_thread;
	int kept_errno = errno;
	uint64_t entry;

	if (thread->busy) { /* ours, or of a signal handler that interrupted us */
		memory_lost();
		return;
	}
	thread->busy = 1;
	KYMO__BARRIER();
	if (thread->scan) { /* dlopen itself may allocate before the object is loaded */
		thread->scan--;
		if (memory_patch_new())
			thread->scan = 0;
	}
	memory_follow_switch_off();
	memory_announce();
	entry = (bytes < MEMORY_SIZE_MASK ? bytes : MEMORY_SIZE_MASK) |
		(uint64_t)memory_stack(mapped, caller) << MEMORY_SIZE_BITS;
	if (kymo__load_relaxed(&memory_mode) != KYMO_MEMORY_SAMPLED)
		memory_passed((int64_t)bytes);
	else if (bytes < KYMO_MEMORY_MEAN)
		entry |= MEMORY_SAMPLED;
	allocation_rows_put(ptr, entry);
	KYMO__BARRIER();
	thread->busy = 0;
	errno = kept_errno;
}

void memory_freed(const void *ptr)
{
	uint64_t entry = memory_moving(ptr);

	if (entry)
		memory_moved(ptr, entry);
}

uint64_t memory_moving(const void *ptr)
{
	uint64_t entry = memory_live_take(ptr);

	if (!entry && ptr && kymo__load_relaxed(&memory_mode) == KYMO_MEMORY_EXACT)
		memory_foreign();
	return entry;
}

void memory_stayed(const void *ptr, uint64_t entry)
{
	memory_live_put(ptr, entry);
}

void memory_moved(const void *from, uint64_t entry)
{
	struct memory_thread *thread = &memory_thread;
	uint64_t ticks = kymo__ticks();
	int kept_errno = errno;

	count(entry, -1, ticks);
	if (thread->busy)
		return; /* a signal handler that interrupted us: counted, without a row */
	thread->busy = 1;
	KYMO__BARRIER();
	memory_event(ticks, from, entry & MEMORY_SIZE_MASK,
		     (uint32_t)(entry >> MEMORY_SIZE_BITS & 0x7fffff), 1, memory_live_bytes());
	allocation_rows_write_row(ticks,
				  entry & MEMORY_SAMPLED ? SCHEMA_FREE_SAMPLED : SCHEMA_FREE_EXACT,
				  from, entry);
	KYMO__BARRIER();
	thread->busy = 0;
	errno = kept_errno;
}
