/*
 * How long to wait for the next sample of a process where sample_rate is not set: 1 ms in its
 * first second, so that a short program has an answer; then 10 ms; and longer while nothing
 * changes, or where a sample costs so much that sampling would take more than 1 % of a core.
 */
#ifndef KYMO_COLLECT_PYTHON_SAMPLE_PACE_H
#define KYMO_COLLECT_PYTHON_SAMPLE_PACE_H

#include <stdint.h>

#include "base/schema.h"

#define SAMPLE_PACE_FIRST_NS 1000000ull
#define SAMPLE_PACE_FIRST_FOR_NS 1000000000ull
#define SAMPLE_PACE_NS ((uint64_t)SCHEMA_SAMPLE_PERIOD_NS)
#define SAMPLE_PACE_SLOWEST_NS 100000000ull /* of an unchanged stack */
#define SAMPLE_PACE_SAME 5u /* samples without a change before the period doubles */

struct sample_pace {
	uint64_t fixed_ns; /* as set by the user; 0: not set */
	uint64_t age_ns; /* since the first sample of the process */
	uint64_t unchanged; /* samples in a row with the same stacks of all threads */
	uint64_t cost_ns; /* CPU time of one sample of each sampled process */
};

uint64_t sample_pace_next(const struct sample_pace *pace);
/* The shortest period that the cost allows. */
uint64_t sample_pace_least(const struct sample_pace *pace);

#endif
