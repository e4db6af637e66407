/*
 * What kymo's own adapters inside the target (python/NAME) call beyond <kymo/kymo.h>. As safe as
 * all of that: no call blocks, fails loudly or allocates with malloc.
 */
#ifndef KYMO_RECORD_DEVICE_ADAPTER_H
#define KYMO_RECORD_DEVICE_ADAPTER_H

#include <kymo/kymo.h>

#include "base/schema.h"

/* A row of one of kymo's own tables but trace.zones. 0, also while recording is off; -EAGAIN: lost,
   counted. */
KYMO__EXPORT int kymo__append(enum schema_id table, const void *row);
/* poll.c: whether malloc is watched. What `kymo config` asks for, and what of it libkymo_memory has
   done by now. */
extern KYMO__EXPORT uint32_t kymo__memory_followed;
static inline uint32_t kymo__memory_wanted(uint32_t on)
{
	return on & KYMO_ON_ALLOC ? on & (KYMO_ON_ALLOC | KYMO_ON_ALLOC_EXACT) : 0;
}
/* libkymo_memory is there: follow() does what is wanted, from now on at each kymo_poll() that finds
   something to be done. Gives an address inside libkymo: variables of it may lie in the program,
   which the linker has copied them to. */
KYMO__EXPORT const void *kymo__memory_here(void (*follow)(void), bool preloaded);
KYMO__EXPORT void kymo__memory_done(uint32_t wanted, bool refused);
/* This program will call kymo_poll(). */
KYMO__EXPORT void kymo__poll_promised(void);
/* An entry of the thread table that is no thread: what rows of a task, say, carry while it runs on
   the calling thread. It has the calling thread's tid. 0: the table is full, or nothing is
   recorded. */
KYMO__EXPORT uint32_t kymo__thread_entry(const char *name);
/* Between the two, zones of the calling thread, and up to 512 rows of python.torch_trace, go to a
   place that nobody reads, so that an adapter can measure what they cost. One thread at a time. The
   first gives what the second takes. */
KYMO__EXPORT struct kymo__lane *kymo__cost_lane_begin(void);
KYMO__EXPORT void kymo__cost_lane_end(struct kymo__lane *before);
KYMO__EXPORT uint64_t kymo__cost_lane_rows(void); /* written there since the first */
/* What one zone of that source costs the program, in ticks, as the adapter measured it. */
KYMO__EXPORT void kymo__source_cost(enum kymo_source source, uint64_t ticks);

#endif
