/* The clock of recordings: the counter used, and its relation to the kernel's clocks. libc only. */
#ifndef KYMO_BASE_CLOCK_H
#define KYMO_BASE_CLOCK_H

#include <stdint.h>

#include "base/format.h"

/* Chooses the clock once and sets kymo__slow_clock: the CPU's counter if it is invariant and
   trusted by the kernel, else CLOCK_MONOTONIC. KYMO_CLOCK=monotonic forces the latter. */
enum kymo_clock_kind clock_init(void);
/* Reads ticks between two readings of CLOCK_MONOTONIC; takes the narrowest of a few tries. */
void clock_take_pair(struct kymo_clock_pair *out);
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);

#endif
