/* The clock of recordings: which counter serves, and how it relates to the kernel's clocks. libc
   only. */
#ifndef KYMO_BASE_CLOCK_H
#define KYMO_BASE_CLOCK_H

#include <stdint.h>

#include "base/format.h"

/* Decides once which clock serves and sets kymo__slow_clock accordingly: the CPU's counter where it
   is invariant and the kernel trusts it, else CLOCK_MONOTONIC. KYMO_CLOCK=monotonic asks for the
   latter. */
enum kymo_clock_kind clock_init(void);
/* Reads ticks between two readings of CLOCK_MONOTONIC; the narrowest of a few tries. */
void clock_take_pair(struct kymo_clock_pair *out);
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);

#endif
