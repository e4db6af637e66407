#include "store/clocks/clock_lines.h"

#include <math.h>

double clock_lines_seconds(const struct clock_lines *lines, int64_t t_ns)
{
	return (double)(t_ns - lines->t0_ns) / 1e9;
}

static void add_corner(struct clock_lines *to, double offset, double drift)
{
	if (to->count < CLOCK_LINES_CORNERS) {
		to->offset[to->count] = offset;
		to->drift[to->count++] = drift;
	}
}

void clock_lines_begin(struct clock_lines *lines, int64_t t0_ns, int64_t base_ns,
		       struct clock_lines_interval offset, struct clock_lines_interval drift)
{
	lines->t0_ns = t0_ns;
	lines->base_ns = base_ns;
	lines->count = 0;
	if (offset.low > offset.high || drift.low > drift.high)
		return;
	add_corner(lines, offset.low, drift.low);
	add_corner(lines, offset.high, drift.low);
	add_corner(lines, offset.high, drift.high);
	add_corner(lines, offset.low, drift.high);
}

/* Above 0: beyond the bound, which is a lower one if sign is -1. */
static double beyond(const struct clock_lines *lines, size_t i, double seconds, double bound,
		     double sign)
{
	return sign * (lines->offset[i] + lines->drift[i] * seconds - bound);
}

static void cut_edge(const struct clock_lines *lines, size_t i, double part, struct clock_lines *to)
{
	size_t next = (i + 1) % lines->count;

	add_corner(to, lines->offset[i] + part * (lines->offset[next] - lines->offset[i]),
		   lines->drift[i] + part * (lines->drift[next] - lines->drift[i]));
}

static bool clock_lines_all_within(const struct clock_lines *lines, double seconds, double bound,
				   double sign)
{
	for (size_t i = 0; i < lines->count; i++)
		if (beyond(lines, i, seconds, bound, sign) > 0)
			return false;
	return true;
}

/* Too many corners: the bound is left out, which allows more. */
static bool keep_within(struct clock_lines *lines, int64_t t_ns, double bound, double sign)
{
	const double seconds = clock_lines_seconds(lines, t_ns);
	struct clock_lines kept;

	if (clock_lines_all_within(lines, seconds, bound, sign))
		return lines->count;
	kept.t0_ns = lines->t0_ns;
	kept.base_ns = lines->base_ns;
	kept.count = 0;
	for (size_t i = 0; i < lines->count; i++) {
		double here = beyond(lines, i, seconds, bound, sign);
		double there = beyond(lines, (i + 1) % lines->count, seconds, bound, sign);

		if (here <= 0)
			add_corner(&kept, lines->offset[i], lines->drift[i]);
		if ((here <= 0) != (there <= 0))
			cut_edge(lines, i, here / (here - there), &kept);
	}
	if (kept.count && kept.count < CLOCK_LINES_CORNERS)
		*lines = kept;
	return kept.count;
}

bool clock_lines_below(struct clock_lines *lines, int64_t t_ns, double bound)
{
	return keep_within(lines, t_ns, bound, 1);
}

bool clock_lines_above(struct clock_lines *lines, int64_t t_ns, double bound)
{
	return keep_within(lines, t_ns, bound, -1);
}

struct clock_lines_interval clock_lines_at(const struct clock_lines *lines, int64_t t_ns)
{
	double seconds = clock_lines_seconds(lines, t_ns);
	struct clock_lines_interval all = { INFINITY, -INFINITY, 0 };

	for (size_t i = 0; i < lines->count; i++) {
		double value = lines->offset[i] + lines->drift[i] * seconds;

		all.low = fmin(all.low, value);
		all.high = fmax(all.high, value);
	}
	all.best = (all.low + all.high) / 2;
	return all;
}
