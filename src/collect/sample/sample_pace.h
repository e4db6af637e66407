/*
 * How long to wait for the next sample of a process where sample_rate is not set: 1 ms at first, so
 * that a short program has an answer; a hundredth of its age from 100 ms on, so that all programs
 * have some hundred samples; 10 ms after a second; and longer while nothing changes (at most 10 ms
 * in the first second, 100 ms after it), or where a sample costs so much that sampling would take
 * more than 0.5 % of a core. Of a process that waits, or that others keep from the cores, it may
 * take less: 0.1 % of the time and 0.4 % of the CPU time that the process uses.
 * While memory grows, 50 ms of each second have samples every
 * millisecond, and nearly half of the first three seconds.
 *
 * Programs may start thousands of short processes. All first seconds of a run share an amount of
 * CPU time, which grows with its duration; when it is used up, new processes are sampled as old
 * ones are.
 */
#ifndef KYMO_COLLECT_SAMPLE_SAMPLE_PACE_H
#define KYMO_COLLECT_SAMPLE_SAMPLE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"

#define SAMPLE_PACE_FIRST_NS 1000000ull
#define SAMPLE_PACE_FIRST_FOR_NS 1000000000ull
#define SAMPLE_PACE_AGE_PARTS 100u /* a period is at least this part of the age */
#define SAMPLE_PACE_SPENT_NS 10000000ull /* for the first seconds of all processes */
#define SAMPLE_PACE_SPENT_PARTS 1000u /* and this part of the duration */
#define SAMPLE_PACE_NS ((uint64_t)SCHEMA_SAMPLE_PERIOD_NS)
#define SAMPLE_PACE_SLOWEST_NS 100000000ull /* of an unchanged stack */
#define SAMPLE_PACE_SAME 5u /* samples without a change before the period doubles */
#define SAMPLE_PACE_FIRST_SAME 20u /* in the first second */

struct sample_pace {
	uint64_t fixed_ns; /* as set by the user; 0: not set */
	uint64_t age_ns; /* since the first sample of the process */
	uint64_t unchanged; /* samples in a row with the same stacks of all threads */
	int burst; /* sample as in the first second, for a moment */
	uint64_t cost_ns; /* CPU time of one sample of each sampled process */
	uint32_t idle_permille; /* of the last time; 0: it uses a core or more */
	uint64_t run_ns; /* since the sampler began */
	uint64_t spent_ns; /* on samples that were taken in the first second of a process */
};

/* Whether the process is sampled as in its first second. */
bool sample_pace_is_first(const struct sample_pace *pace);

uint64_t sample_pace_next(const struct sample_pace *pace);
/* The shortest period that the cost allows. */
uint64_t sample_pace_least(const struct sample_pace *pace);

#endif
