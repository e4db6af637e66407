/*
 * The budget of `kymo run --max-overhead`: decides which detail to lower when recording costs more
 * than the budget, and which to raise when there is room. A pure function of measured costs; see
 * governor_run.h for what is measured and changed.
 *
 * Detail is lowered in the order of enum governor_rung, and raised in the opposite order. Python
 * calls are no rung of their own: the program keeps to a limit by itself (python_limit), which is
 * what the others leave of the budget. Rungs go down while calls have less than half of it.
 */
#ifndef KYMO_COLLECT_RUN_GOVERNOR_H
#define KYMO_COLLECT_RUN_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

enum governor_rung {
	GOVERNOR_NATIVE, /* native stack samples: on, off */
	GOVERNOR_SAMPLES, /* Python stack samples: a tenth, a hundredth, off */
	GOVERNOR_OPS, /* torch operators: in a quarter of the steps, a sixteenth, off */
	GOVERNOR_TORCH, /* torch modules: in a quarter of the steps, a sixteenth, a 64th */
	GOVERNOR_RUNGS
};

/* Shares of the time, 1: all of it. */
struct governor_costs {
	double rung[GOVERNOR_RUNGS];
	double python; /* calls */
	double rest; /* zones of the program and the collector itself: never lowered */
};

struct governor {
	double budget; /* a share */
	struct governor_costs mean; /* of the last seconds */
	unsigned level[GOVERNOR_RUNGS]; /* 0: as the user asked */
	double before[GOVERNOR_RUNGS]; /* its mean cost when it was last lowered */
	uint32_t python_limit; /* millionths */
	uint64_t age_ns, limit_ns, lowered_ns, raised_ns; /* since each */
	uint64_t room_ns; /* there has been room for so long */
	uint64_t wait_ns; /* for which there has to be room before detail is raised */
	int last_raised; /* a rung; -1: none */
	int fresh; /* changed at the last look: its mean begins again; -1: none */
	bool exceeded; /* nothing is left to lower */
};

struct governor_change {
	int rung; /* -1: none */
	unsigned level; /* the new one */
	bool limit; /* python_limit has changed */
	bool exceeded; /* nothing is left to lower, since now */
};

/* Levels of a rung below the first. */
extern const unsigned governor_levels[GOVERNOR_RUNGS];

/* 1 %: 0.01. */
void governor_init(struct governor *governor, double budget);
/* past_ns: the time that the costs are of. */
void governor_next(struct governor *governor, const struct governor_costs *costs, uint64_t past_ns,
		   struct governor_change *out);
/* All together, of the mean. */
double governor_sum(const struct governor_costs *costs);
/* "1%", "0.5 %" or "0.01"; false: not from 0.05 % to 100 %. */
bool governor_parse(const char *text, double *out_budget);

#endif
