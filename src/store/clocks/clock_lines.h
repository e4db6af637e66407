/*
 * The lines that bounds allow: a convex polygon of an offset and a drift. Each bound of the offset
 * at one time cuts off a part of it; the rest is all that the bounds allow together.
 */
#ifndef KYMO_STORE_CLOCK_LINES_H
#define KYMO_STORE_CLOCK_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_LINES_CORNERS 64u
#define CLOCK_LINES_DRIFT_MAX 5e5 /* ns per s: 500 ppm; quartz clocks have 100 */

/* Offsets are relative to base_ns, at t0_ns; drifts are in ns per s. */
struct clock_lines {
	int64_t t0_ns, base_ns;
	size_t count; /* corners; 0: no line is left */
	double offset[CLOCK_LINES_CORNERS], drift[CLOCK_LINES_CORNERS];
};

/* An interval of any drift. */
#define CLOCK_LINES_ANY_DRIFT \
	((struct clock_lines_interval){ -CLOCK_LINES_DRIFT_MAX, CLOCK_LINES_DRIFT_MAX, 0 })

struct clock_lines_interval {
	double low, high, best; /* best: the middle */
};

/* All lines with such an offset at t0 and such a drift. */
void clock_lines_begin(struct clock_lines *lines, int64_t t0_ns, int64_t base_ns,
		       struct clock_lines_interval offset, struct clock_lines_interval drift);
/* Keeps the lines whose offset at t_ns is not above the bound (relative to base_ns); or not below
   it. False: no line is left, and *lines is as before. */
bool clock_lines_below(struct clock_lines *lines, int64_t t_ns, double bound);
bool clock_lines_above(struct clock_lines *lines, int64_t t_ns, double bound);
/* The offsets at t_ns that are left. */
struct clock_lines_interval clock_lines_at(const struct clock_lines *lines, int64_t t_ns);
double clock_lines_seconds(const struct clock_lines *lines, int64_t t_ns);

#endif
