/*
 * Calls for kymo's own adapters inside the program (python/NAME), beyond <kymo/kymo.h>. No call
 * blocks, prints or allocates with malloc.
 */
#ifndef KYMO_RECORD_ADAPTER_H
#define KYMO_RECORD_ADAPTER_H

#include <kymo/kymo.h>

#include "base/schema.h"

/* Appends a row to one of kymo's tables except trace.zones. Returns 0, also while recording is off;
   -EAGAIN: dropped and counted. */
KYMO__EXPORT int kymo__append(enum schema_id table, const void *row);
/* late_load.c: the KYMO_ON_ALLOC* bits that libkymo_memory has applied. kymo__memory_wanted(): the
   bits that `kymo config` asks for. */
extern KYMO__EXPORT uint32_t kymo__memory_followed;
static inline uint32_t kymo__memory_wanted(uint32_t on)
{
	return on & KYMO_ON_ALLOC ? on & (KYMO_ON_ALLOC | KYMO_ON_ALLOC_EXACT) : 0;
}
/* Registers libkymo_memory. kymo_poll() calls follow() when the wanted bits differ from the applied
   ones. Returns an address inside libkymo, because the linker may have copied its variables into
   the program. */
KYMO__EXPORT const void *kymo__memory_here(void (*follow)(void), bool preloaded);
KYMO__EXPORT void kymo__memory_done(uint32_t wanted, bool refused);
/* Declares that this program calls kymo_poll(). */
KYMO__EXPORT void kymo__poll_promised(void);
/* Adds an entry to the thread table that is not a thread: rows of an asyncio task carry it while
   the task runs on the calling thread. It has the calling thread's tid. 0: the table is full, or
   recording is off. */
KYMO__EXPORT uint32_t kymo__thread_entry(const char *name);
/* Between begin and end, zones of the calling thread and up to 512 rows of python.torch_trace go to
   a scratch lane that no reader sees, so that an adapter can measure their cost. One thread at a
   time. Pass the result of begin to end. */
KYMO__EXPORT struct kymo__lane *kymo__cost_lane_begin(void);
KYMO__EXPORT void kymo__cost_lane_end(struct kymo__lane *before);
KYMO__EXPORT uint64_t kymo__cost_lane_rows(void); /* written since begin */
/* Stores the measured cost of one zone of that source, in ticks. */
KYMO__EXPORT void kymo__source_cost(enum kymo_source source, uint64_t ticks);

/* Recording in windows, so that it costs at most a share of the time. After each window it pauses
   until the share covers what the window has cost. */
struct kymo__windows {
	uint64_t debt_ns; /* cost that is not covered yet */
	uint64_t window_ns; /* length of the next window */
	uint64_t period_ns; /* from one window to the next, about */
	bool open;
};
/* past_ns ago was the last call; recording has cost cost_ns since then. limit: millionths; 0: none.
   Sets open, and returns the time until the next call. */
KYMO__EXPORT uint64_t kymo__windows_next(struct kymo__windows *windows, uint64_t past_ns,
					 uint64_t cost_ns, uint32_t limit);
/* Rows of trace.zones of this process, ever. */
KYMO__EXPORT uint64_t kymo__zones_written(void);
KYMO__EXPORT uint32_t kymo__python_limit(void);
/* Adds calls to the control page; cost_ns is added to what they cost. Returns the whole cost. */
KYMO__EXPORT uint64_t kymo__python_spent(uint64_t calls, uint64_t cost_ns);

#endif
