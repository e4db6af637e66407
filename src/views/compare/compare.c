#include "views/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "views/term/target.h"

/* Shares of the 5 %: the step and the modules; the regions get the rest, by their time. */
#define STEP_SHARE 0.25
#define MODULE_SHARE 0.25 /* if there are any */

/* ---- statistics ----------------------------------------------------------------------------- */

struct sides {
	struct compare_stats_run runs[COMPARE_RUNS_MOST];
	struct compare_stats_side a, b;
};

/* A region that a run never entered takes 0 in each of its steps; a module that was never called
   has no values. */
static bool set_sides(const struct compare *compare, const struct compare_item *item,
		      const double *zeros, struct sides *out)
{
	size_t counts[2] = { 0, 0 }, used = 0;

	for (size_t i = 0; i < compare->a_count + compare->b_count; i++) {
		const struct compare_series *series = &item->series[i];

		if (series->count)
			out->runs[used] = (struct compare_stats_run){ series->values,
								      series->count };
		else if (item->kind == COMPARE_REGION)
			out->runs[used] = (struct compare_stats_run){ zeros,
								      compare->runs[i].bin_count };
		else
			continue;
		counts[i >= compare->a_count]++;
		used++;
	}
	out->a = (struct compare_stats_side){ out->runs, counts[0] };
	out->b = (struct compare_stats_side){ out->runs + counts[0], counts[1] };
	return counts[0] && counts[1];
}

static double mean_time(const struct compare_item *item)
{
	double time = (item->stats.a + item->stats.b) / 2;

	return isfinite(time) && time > 0 ? time : 0;
}

static void set_weights(const struct compare *compare, double *weights)
{
	double sums[3] = { 0, 0, 0 }, shares[3];

	for (size_t i = 0; i < compare->item_count; i++)
		sums[compare->items[i].kind] += mean_time(&compare->items[i]);
	shares[COMPARE_STEP] = STEP_SHARE;
	shares[COMPARE_MODULE] = sums[COMPARE_MODULE] > 0 ? MODULE_SHARE : 0;
	shares[COMPARE_REGION] = 1 - STEP_SHARE - shares[COMPARE_MODULE];
	for (size_t i = 0; i < compare->item_count; i++) {
		enum compare_kind kind = compare->items[i].kind;

		weights[i] = sums[kind] > 0
				     ? shares[kind] * mean_time(&compare->items[i]) / sums[kind]
				     : 0;
	}
}

/* Two passes: the first measures the noise of all regions together, the second estimates each with
   at least that noise. */
static void estimate_all(struct compare *compare, const double *zeros, double *weights)
{
	struct compare_stats_noise noise = { 0 };
	struct sides sides;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < compare->item_count; i++) {
			struct compare_item *item = &compare->items[i];

			if (!set_sides(compare, item, zeros, &sides)) {
				item->stats = (struct compare_stats){ .p = NAN, .ratio = NAN };
				item->stats.low = item->stats.high = NAN;
				continue;
			}
			compare_stats_estimate(&sides.a, &sides.b,
					       pass && item->kind != COMPARE_MODULE ? &noise : NULL,
					       &item->stats);
		}
		if (pass)
			break;
		set_weights(compare, weights);
		for (size_t i = 0; i < compare->item_count; i++) {
			if (compare->items[i].kind != COMPARE_MODULE &&
			    set_sides(compare, &compare->items[i], zeros, &sides))
				compare_stats_listen(&noise, &sides.a, &sides.b, weights[i]);
		}
	}
}

static int compare_judge(struct compare *compare)
{
	size_t count = compare->item_count, bins = 1;
	struct compare_stats *all = calloc(count + 1, sizeof(all[0]));
	double *weights = calloc(count + 1, sizeof(weights[0])), *zeros;
	int rc = -ENOMEM;

	for (size_t i = 0; i < compare->a_count + compare->b_count; i++)
		bins = compare->runs[i].bin_count > bins ? compare->runs[i].bin_count : bins;
	zeros = calloc(bins, sizeof(zeros[0]));
	if (all && weights && zeros) {
		estimate_all(compare, zeros, weights);
		for (size_t i = 0; i < count; i++)
			all[i] = compare->items[i].stats;
		rc = compare_stats_correct(all, weights, count, COMPARE_STATS_ALPHA);
		for (size_t i = 0; i < count; i++) {
			compare->items[i].stats = all[i];
			compare->items[i].apart = compare_are_apart(compare, &compare->items[i]);
		}
	}
	free(all);
	free(weights);
	free(zeros);
	return rc;
}

/* ---- order ---------------------------------------------------------------------------------- */

bool compare_differs(const struct compare_item *item)
{
	return item->stats.significant || item->apart;
}

double compare_at_stake(const struct compare_item *item)
{
	return fabs(item->stats.b - item->stats.a);
}

static int by_stake(const void *a, const void *b)
{
	const struct compare_item *left = *(const struct compare_item *const *)a;
	const struct compare_item *right = *(const struct compare_item *const *)b;
	double x = compare_at_stake(left), y = compare_at_stake(right);

	if (compare_differs(left) != compare_differs(right))
		return compare_differs(left) ? -1 : 1;
	return x > y ? -1 : x < y ? 1 : strcmp(left->name, right->name);
}

const struct compare_item **compare_ranked(const struct compare *compare)
{
	const struct compare_item **list = malloc((compare->item_count + 1) * sizeof(list[0]));

	for (size_t i = 0; list && i < compare->item_count; i++)
		list[i] = &compare->items[i];
	if (list && compare->item_count > 1)
		qsort(list + 1, compare->item_count - 1, sizeof(list[0]), by_stake);
	return list;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int compare_read_run(struct compare *compare, size_t run,
			    void (*opened)(struct tables *tables), struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = tables_own_memory() };
	struct tables *tables = NULL;
	struct compare_run *one = &compare->runs[run];
	int rc = target_resolve(one->target, one->path, sizeof(one->path), err);

	if (!rc)
		rc = tables_open(one->path, &options, &tables, err);
	if (!rc) {
		opened(tables);
		rc = compare_gather(compare, run, tables, err);
		opened(NULL);
	}
	tables_close(tables);
	return rc;
}

static int compare_start(const struct compare_options *options, struct compare *out,
			 struct kymo_error *err)
{
	*out = (struct compare){ .a_count = options->a_count,
				 .b_count = options->b_count,
				 .total = options->total,
				 .ranks = options->ranks,
				 .fail_above = options->fail_above };
	out->runs = calloc(options->a_count + options->b_count, sizeof(out->runs[0]));
	if (!out->runs || call_tree_init(&out->flame))
		return error_set(err, ENOMEM, "no memory to compare");
	for (size_t i = 0; i < options->a_count; i++)
		out->runs[i].target = options->a[i];
	for (size_t i = 0; i < options->b_count; i++)
		out->runs[options->a_count + i].target = options->b[i];
	return 0;
}

int compare_make(const struct compare_options *options, struct compare *out,
		 void (*opened)(struct tables *tables), struct kymo_error *err)
{
	int rc = compare_start(options, out, err);

	for (size_t i = 0; !rc && i < options->a_count + options->b_count; i++)
		rc = compare_read_run(out, i, opened, err);
	if (rc)
		return rc;
	compare_check(out);
	if (out->why[0] && !options->anyway)
		return 0;
	if (compare_tell_apart(out) || compare_judge(out))
		return error_set(err, ENOMEM, "no memory to compare");
	compare_say(out);
	return 0;
}

void compare_fini(struct compare *compare)
{
	for (size_t i = 0; compare->runs && i < compare->a_count + compare->b_count; i++)
		free(compare->runs[i].steps);
	for (size_t i = 0; i < compare->item_count; i++) {
		for (size_t run = 0; run < compare->a_count + compare->b_count; run++)
			free(compare->items[i].series[run].values);
		free(compare->items[i].series);
		free(compare->items[i].name);
	}
	free(compare->items);
	free(compare->runs);
	name_table_fini(&compare->frames);
	name_table_fini(&compare->names);
	call_tree_fini(&compare->flame);
}
