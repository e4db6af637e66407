#include "views/compare/compare_stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES_LEAST 8 /* of one run; fewer give no estimate of their spread */
#define EFFECTIVE_LEAST 5 /* batches that count */
#define FEW_WIDER 4 /* see spread_of() */
#define RESEMBLANCE_MOST 0.2 /* of neighbouring batches, before they are made longer */
#define RESEMBLANCE_CAP 0.95
#define WARMUP_MADS 5.0
#define WARMUP_SHARE 4 /* at most a quarter */
#define MAD_TO_DEVIATION 1.4826
#define WANDER_Z 2.326 /* noise without drift is taken for drift once in 100 */
#define WANDER_LEVEL (3.14159265358979 * 3.14159265358979 / 3) /* see compare_stats_widen() */
#define WANDER_FREEDOM 2 /* of each side: only two slow waves are measured */

/* ---- Student's t ---------------------------------------------------------------------------- */

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h, factor;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int i = 1; i <= 300; i++) {
		double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));

		for (int half = 0; half < 2; half++) {
			double term = half ? odd : even;

			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			factor = d * c;
			h *= factor;
		}
		if (fabs(factor - 1) < 1e-14)
			break;
	}
	return h;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	/* The fraction converges quickly on this side only; the other one mirrors it. */
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double compare_stats_t_tails(double t, double freedom)
{
	if (isnan(t) || !(freedom > 0))
		return NAN;
	if (isinf(t))
		return 0;
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double compare_stats_t_quantile(double p, double freedom)
{
	double low = 0, high = 1;

	if (!(p > 0) || !(p < 1) || !(freedom > 0))
		return p >= 1 ? 0 : INFINITY;
	while (compare_stats_t_tails(high, freedom) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (compare_stats_t_tails(middle, freedom) > p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

/* ---- warm-up -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Sorts values. */
static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

size_t compare_stats_warmup(const double *steps, size_t count)
{
	size_t half = count / 2, later = count - half, most = count / WARMUP_SHARE, first = 0;
	double *sorted, middle, limit;

	if (count < 4)
		return 0;
	sorted = malloc(later * sizeof(sorted[0]));
	if (!sorted)
		return 0;
	memcpy(sorted, steps + half, later * sizeof(sorted[0]));
	middle = median(sorted, later);
	for (size_t i = 0; i < later; i++)
		sorted[i] = fabs(sorted[i] - middle);
	limit = middle + WARMUP_MADS * MAD_TO_DEVIATION * median(sorted, later);
	free(sorted);
	while (first < most && steps[first] > limit)
		first++;
	return first;
}

/* ---- means and their error ------------------------------------------------------------------ */

static double mean_of(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum / (double)count;
}

static double batch_mean(const struct compare_stats_run *run, size_t batch, size_t i)
{
	return mean_of(run->values + i * batch, batch);
}

/* Sums over the batches of one run: squares, and products of neighbours, about the run's own
   mean. */
struct moments {
	double squares, products;
	size_t batches;
};

static struct moments moments_of(const struct compare_stats_run *run, size_t batch)
{
	struct moments out = { .batches = run->count / batch };
	double middle = mean_of(run->values, out.batches * batch), before = 0, here;

	for (size_t i = 0; i < out.batches; i++, before = here) {
		here = batch_mean(run, batch, i) - middle;
		out.squares += here * here;
		out.products += i ? here * before : 0;
	}
	return out;
}

/*
 * How much neighbouring batches resemble each other, from both sides together: both ran the same
 * program. Estimates about a sample's own mean are too small by about (1 + 4 r) / n, which is added
 * back.
 */
static double resemblance(const struct moments *a, const struct moments *b)
{
	double squares = a->squares + b->squares, each = (double)(a->batches + b->batches) / 2, r;

	if (!(squares > 0))
		return 0;
	r = (a->products + b->products) / squares;
	return r + (1 + 4 * (r > 0 ? r : 0)) / each;
}

/* How much batches resemble each other if steps do by r and each depends only on the one before. */
static double of_batches(double r, size_t batch)
{
	double b = (double)batch, power = 1 - pow(r, b);

	return r > 0 ? r * power * power / (b * (1 - r * r) - 2 * r * power) : 0;
}

static double compare_stats_between(double low, double value, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* For batches of this size: the estimate, but at least the value expected from all regions. */
static double resemblance_at(const struct moments *a, const struct moments *b, double least,
			     size_t batch)
{
	return compare_stats_between(
		of_batches(compare_stats_between(0, least, RESEMBLANCE_CAP), batch),
		resemblance(a, b), RESEMBLANCE_CAP);
}

static size_t least_batches(const struct compare_stats_run *a, const struct compare_stats_run *b,
			    size_t batch)
{
	size_t count = a->count < b->count ? a->count : b->count;

	return count / batch;
}

struct spread {
	double variance; /* of the mean */
	double freedom;
};

/*
 * A batch that still resembles its neighbour counts as (1 - r) / (1 + r) of a batch. If too few are
 * left, the mean is taken to be as uncertain as one batch with twice the spread and few degrees of
 * freedom: small differences are lost, obvious ones are found. In simulations this raises no more
 * false alarms than giving no result, except for runs of ten steps that drift so slowly that they
 * look constant.
 */
static struct spread spread_of(const struct moments *moments, double r)
{
	double n = (double)moments->batches, effective = n * (1 - r) / (1 + r);
	double variance = moments->squares / (n - 1);

	if (effective >= EFFECTIVE_LEAST)
		return (struct spread){ variance / effective, effective - 1 };
	if (moments->batches < BATCHES_LEAST)
		return (struct spread){ NAN, NAN };
	return (struct spread){ FEW_WIDER * variance / (effective < 1 ? effective : 1), 1 };
}

/* ---- one comparison ------------------------------------------------------------------------- */

/*
 * Fieller: the ratios for which b - ratio * a could be 0. If a could be 0 and b not, there
 * is no largest one; the least still shows that b takes longer.
 */
static void set_interval(struct compare_stats *out, double variance_a, double variance_b)
{
	double t = compare_stats_t_quantile(COMPARE_STATS_ALPHA, out->freedom);
	double square = out->a * out->a - t * t * variance_a, cross = out->a * out->b;
	double constant = out->b * out->b - t * t * variance_b;
	double root = cross * cross - square * constant;

	out->low = out->high = NAN;
	if (!(root >= 0) || !(square > 0 || (square < 0 && constant > 0)))
		return;
	out->low = (cross - sqrt(root)) / square;
	out->high = square > 0 ? (cross + sqrt(root)) / square : INFINITY;
	out->low = out->low < 0 ? 0 : out->low;
}

/* Welch: the sides may have different variances. */
static void compare_stats_finish(struct compare_stats *out, struct spread a, struct spread b)
{
	double variance = a.variance + b.variance, t;

	out->ratio = out->a > 0 ? out->b / out->a : NAN;
	out->error = sqrt(variance);
	out->p = out->low = out->high = NAN;
	out->freedom = variance * variance /
		       (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
	if (variance == 0) { /* nothing varies: equal, or certainly different */
		out->freedom = a.freedom + b.freedom;
		out->p = out->a == out->b ? 1 : 0;
		out->low = out->high = out->ratio;
		return;
	}
	if (!(variance > 0) || !(out->freedom > 0))
		return;
	t = (out->b - out->a) / out->error;
	out->p = compare_stats_t_tails(t, out->freedom);
	set_interval(out, a.variance, b.variance);
}

/* ---- slow drift ----------------------------------------------------------------------------- */

/* The power of the slowest wave, half a period over the run. For noise without drift it is the
   variance. */
static double slowest_wave(const struct compare_stats_run *run)
{
	double middle = mean_of(run->values, run->count), sum = 0, n = (double)run->count;

	for (size_t i = 0; i < run->count; i++)
		sum += (run->values[i] - middle) * cos(3.14159265358979 * ((double)i + 0.5) / n);
	return 2 / n * sum * sum;
}

/* The power of both sides, relative to the value expected from their spread: about 1. */
static double wander_of(const struct compare_stats_run *a, const struct compare_stats_run *b,
			double variance)
{
	double power = slowest_wave(a) / (double)a->count + slowest_wave(b) / (double)b->count;

	return variance > 0 ? power / variance : 0;
}

/* The value that the mean of `freedom` squared normal values exceeds once in 100, by Wilson and
   Hilferty. */
static double wander_limit(double freedom)
{
	double share = 2 / (9 * freedom), root = 1 - share + WANDER_Z * sqrt(share);

	return root * root * root;
}

/*
 * A slow wave under much noise hardly makes neighbours alike, but moves the mean of a run. If it
 * shows, here or in all regions together, the means are as uncertain as those of a random walk: its
 * level varies by pi^2 / 3 times the power of its slowest wave.
 */
static double compare_stats_widen(double own, const struct compare_stats_noise *noise)
{
	double all = noise && noise->weight > 0 ? noise->wander / noise->weight : 0;
	double most = own > all ? own : all;
	bool shows = own > wander_limit(2);

	if (all > 0)
		shows |= all > wander_limit(2 * noise->weight * noise->weight / noise->squares);
	return shows && most * WANDER_LEVEL > 1 ? most * WANDER_LEVEL : 1;
}

static struct spread widened(struct spread spread, double by)
{
	double freedom = spread.freedom < WANDER_FREEDOM ? spread.freedom : WANDER_FREEDOM;

	return by > 1 ? (struct spread){ spread.variance * by, freedom } : spread;
}

static double least_of(const struct compare_stats_noise *noise)
{
	return noise && noise->weight > 0 ? noise->resemblance / noise->weight : 0;
}

static void compare_two_runs(const struct compare_stats_run *a, const struct compare_stats_run *b,
			     const struct compare_stats_noise *noise, struct compare_stats *out)
{
	struct moments left = moments_of(a, 1), right = moments_of(b, 1);
	double least = least_of(noise), r = resemblance_at(&left, &right, least, 1);
	struct spread of_a, of_b;

	out->batch = 1;
	while (r > RESEMBLANCE_MOST && least_batches(a, b, out->batch * 2) >= BATCHES_LEAST) {
		out->batch *= 2;
		left = moments_of(a, out->batch);
		right = moments_of(b, out->batch);
		r = resemblance_at(&left, &right, least, out->batch);
	}
	out->a = mean_of(a->values, a->count);
	out->b = mean_of(b->values, b->count);
	of_a = spread_of(&left, r);
	of_b = spread_of(&right, r);
	out->wander = compare_stats_widen(wander_of(a, b, of_a.variance + of_b.variance), noise);
	compare_stats_finish(out, widened(of_a, out->wander), widened(of_b, out->wander));
}

static void add_means(const struct compare_stats_side *side, double *means, double *mean,
		      double *squares)
{
	for (size_t i = 0; i < side->count; i++)
		means[i] = mean_of(side->runs[i].values, side->runs[i].count);
	*mean = mean_of(means, side->count);
	for (size_t i = 0; i < side->count; i++)
		*squares += (means[i] - *mean) * (means[i] - *mean);
}

/* Runs of one program have the same spread and are few: one spread for both sides. */
static int compare_many_runs(const struct compare_stats_side *a, const struct compare_stats_side *b,
			     struct compare_stats *out)
{
	size_t most = a->count > b->count ? a->count : b->count;
	double *means = malloc(most * sizeof(means[0])), squares = 0, variance;
	double freedom = (double)(a->count + b->count) - 2;

	if (!means)
		return -ENOMEM;
	add_means(a, means, &out->a, &squares);
	add_means(b, means, &out->b, &squares);
	free(means);
	variance = squares / freedom;
	out->batch = 0;
	compare_stats_finish(out, (struct spread){ variance / (double)a->count, freedom },
			     (struct spread){ variance / (double)b->count, freedom });
	if (variance > 0 && !isnan(out->p)) {
		out->freedom = freedom;
		out->p = compare_stats_t_tails((out->b - out->a) / out->error, freedom);
		set_interval(out, variance / (double)a->count, variance / (double)b->count);
	}
	return 0;
}

void compare_stats_listen(struct compare_stats_noise *noise, const struct compare_stats_side *a,
			  const struct compare_stats_side *b, double weight)
{
	struct moments left, right;
	double r, variance;

	if (!(weight > 0) || !a->count || !b->count || a->count + b->count > 3)
		return;
	left = moments_of(&a->runs[0], 1);
	right = moments_of(&b->runs[0], 1);
	r = resemblance(&left, &right);
	noise->resemblance += weight * r;
	r = compare_stats_between(0, r, RESEMBLANCE_CAP);
	variance = spread_of(&left, r).variance + spread_of(&right, r).variance;
	noise->wander += weight * wander_of(&a->runs[0], &b->runs[0], variance);
	noise->weight += weight;
	noise->squares += weight * weight;
}

int compare_stats_estimate(const struct compare_stats_side *a, const struct compare_stats_side *b,
			   const struct compare_stats_noise *noise, struct compare_stats *out)
{
	const struct compare_stats_side *sides[] = { a, b };

	*out = (struct compare_stats){ .p = NAN, .low = NAN, .high = NAN, .p_corrected = NAN };
	out->wander = 1;
	for (size_t i = 0; i < 2; i++) {
		if (!sides[i]->count)
			return -EINVAL;
		for (size_t run = 0; run < sides[i]->count; run++)
			if (!sides[i]->runs[run].count)
				return -EINVAL;
	}
	if (a->count + b->count > 3)
		return compare_many_runs(a, b, out);
	/* Two runs against one hardly show the spread of runs: steps are the unit. */
	compare_two_runs(&a->runs[0], &b->runs[0], noise, out);
	return 0;
}

/* ---- many comparisons ----------------------------------------------------------------------- */

struct ranked {
	size_t index;
	double p, weight;
};

static int by_p_for_its_weight(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;
	double p = left->p / left->weight, q = right->p / right->weight;

	return p < q ? -1 : p > q;
}

/*
 * The items with a result; sum is the weight of all items. An item without a result keeps its
 * share: whether it has one depends on the values, and a test that gains from the failure of others
 * reports too much.
 */
static size_t rank(const struct compare_stats *estimates, const double *weights, size_t count,
		   struct ranked *out, double *sum)
{
	size_t used = 0;

	*sum = 0;
	for (size_t i = 0; i < count; i++) {
		double weight = weights ? weights[i] : 1;

		if (!(weight > 0))
			continue;
		*sum += weight;
		if (!isnan(estimates[i].p))
			out[used++] = (struct ranked){ i, estimates[i].p, weight };
	}
	qsort(out, used, sizeof(out[0]), by_p_for_its_weight);
	return used;
}

/* By its own share of alpha, as if nothing else were significant: valid before the test. */
static double change_seen(const struct compare_stats *estimate, double alpha)
{
	double t = compare_stats_t_quantile(alpha, estimate->freedom);

	/* 95 times in 100: a tail of 5 %, so both tails of 10 %. */
	t += compare_stats_t_quantile(0.10, estimate->freedom);
	return estimate->a > 0 ? t * estimate->error / estimate->a : NAN;
}

int compare_stats_correct(struct compare_stats *estimates, const double *weights, size_t count,
			  double alpha)
{
	struct ranked *ranked = malloc((count + 1) * sizeof(ranked[0]));
	double all, left, largest = 0;
	size_t used;

	if (!ranked)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		estimates[i].p_corrected = estimates[i].could_see = NAN;
		estimates[i].significant = false;
	}
	used = rank(estimates, weights, count, ranked, &all);
	left = all;
	for (size_t i = 0; i < used; i++) {
		struct compare_stats *one = &estimates[ranked[i].index];
		double p = ranked[i].p * left / ranked[i].weight;

		largest = p > largest ? p : largest;
		one->p_corrected = largest < 1 ? largest : 1;
		one->significant = one->p_corrected <= alpha;
		one->could_see = change_seen(one, alpha * ranked[i].weight / all);
		left -= ranked[i].weight;
	}
	free(ranked);
	return 0;
}
