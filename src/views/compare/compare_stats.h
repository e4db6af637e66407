/*
 * Whether B is slower than A, from step times. Plain C and libm, doubles in and intervals out: no
 * recording, no table, no allocation that outlives a call, so that a Python extension can compile
 * the same file.
 *
 *	compare_stats_listen(&noise, &a, &b, weight);		for each region: measure the noise
 *	compare_stats_estimate(&a, &b, &noise, &estimate);	for each region: ratio, interval, p
 *	compare_stats_correct(estimates, weights, count, 0.05);	all together: which are significant
 *
 * Assumptions:
 * - The means are compared: a mean times a count is the time that one waits.
 * - Steps of one run depend on each other (a busy neighbour stays for a while). They are gathered
 *   into batches until batches are independent, and the rest of the dependence widens the interval;
 *   a plain test of steps would report differences that are noise.
 * - Slow drift under the noise (a machine that heats up) moves the mean of a whole run. Where it
 *   shows, intervals are much wider. In few steps it may not show: only several runs are safe.
 * - With several runs, a run is the unit, and its steps only make its mean.
 * - The interval of the ratio is Fieller's, which includes 1 exactly if the difference can be
 *   chance.
 * - Many regions are tested at once, so p is corrected (Holm). A region gets a share of the 5 % by
 *   its weight, which is its time. All false alarms of an A/A comparison together stay below 5 %.
 */
#ifndef KYMO_VIEWS_COMPARE_COMPARE_STATS_H
#define KYMO_VIEWS_COMPARE_COMPARE_STATS_H

#include <stdbool.h>
#include <stddef.h>

#define COMPARE_STATS_ALPHA 0.05
#define COMPARE_STATS_STEPS_LEAST 10 /* of a run, after its warm-up */

/* One run: its values in the order of time. */
struct compare_stats_run {
	const double *values;
	size_t count;
};

/* The runs of one side. */
struct compare_stats_side {
	const struct compare_stats_run *runs;
	size_t count;
};

struct compare_stats {
	double a, b; /* means */
	double ratio; /* b / a; NAN where a is 0 */
	double low,
		/* 95 % interval of the ratio; high is INFINITY where it has no end, both NAN where
		   there is none */
		high;
	double p; /* of no difference; NAN: too few values */
	double error; /* standard error of b - a */
	double freedom; /* degrees of it */
	size_t batch; /* steps per batch; 0: runs were the unit */
	/* factor on the variance for slow drift; 1: none */
	double wander;
	/* By compare_stats_correct(): */
	double p_corrected;
	bool significant;
	/* change relative to a that would be detected 95 times in 100; NAN: none */
	double could_see;
};

/*
 * Steps to leave out at the beginning: those that take longer than the median of the second half by
 * more than five times its usual deviation (MAD), up to the first that does not; at most a quarter
 * of all.
 */
size_t compare_stats_warmup(const double *steps, size_t count);

/*
 * The noise of all regions, by their weight: how much a step resembles the one before, and how
 * strong slow drift is. From few steps of one region both are guesses, so the values of all regions
 * together are the least for each. Starts as zeros; nothing is added if runs are the unit.
 */
struct compare_stats_noise {
	double resemblance, wander, weight,
		squares; /* sums: by weight, of weights, of their squares */
};

void compare_stats_listen(struct compare_stats_noise *noise, const struct compare_stats_side *a,
			  const struct compare_stats_side *b, double weight);

/* noise: NULL for a single region. 0, or -ENOMEM, or -EINVAL if a side has no values. A value that
   is not a number makes p NAN. */
int compare_stats_estimate(const struct compare_stats_side *a, const struct compare_stats_side *b,
			   const struct compare_stats_noise *noise, struct compare_stats *out);

/* Fills p_corrected, significant and could_see. weights: NULL means equal ones; they need not sum
   to 1. -ENOMEM. */
int compare_stats_correct(struct compare_stats *estimates, const double *weights, size_t count,
			  double alpha);

/* Student's t: P(|T| > t), and the t that this is `p` for. */
double compare_stats_t_tails(double t, double freedom);
double compare_stats_t_quantile(double p, double freedom);

#endif
