/* The clock of recordings: the counter used, and its relation to the kernel's clocks. libc only. */
#ifndef KYMO_BASE_CLOCK_H
#define KYMO_BASE_CLOCK_H

#include <stdint.h>

#include "base/format.h"

/* Chooses the clock once and sets kymo__slow_clock: the CPU's counter if it is invariant and
   trusted by the kernel, else CLOCK_MONOTONIC. KYMO_CLOCK=monotonic forces the latter. */
enum kymo_clock_kind clock_init(void);
/* Reads ticks between two readings of CLOCK_MONOTONIC; takes the narrowest of a few tries. The
   time is clock_shared_ns(). */
void clock_take_pair(struct kymo_clock_pair *out);
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* CLOCK_MONOTONIC without the offset of this process's time namespace: the same in all processes of
   a machine, and the time in files. */
uint64_t clock_shared_ns(void);
/* A start time of /proc/PID/stat, without that offset. */
uint64_t clock_shared_starttime(uint64_t starttime);

#endif
