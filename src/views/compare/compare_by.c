#include "views/compare/compare_by.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/query/rows.h"
#include "views/term/target.h"
#include "views_sql.h"

#define NAMED_MOST 3

static const struct {
	const char *word, *one, *many;
	const char *sql;
} parts[] = {
	[COMPARE_BY_RANK] = { "rank", "rank", "ranks", sql_compare_by_rank },
	[COMPARE_BY_ATTEMPT] = { "attempt", "attempt", "attempts", sql_compare_by_attempt },
};

int compare_by_find(const char *word)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].word, word))
			return (int)i;
	return -1;
}

/* ---- the values of a job --------------------------------------------------------------------- */

/* A rank or an attempt: its values in the order of their units (steps). */
struct part {
	int32_t number;
	char host[80];
	double *units, *values;
	size_t count, room, value_room;
};

struct job {
	struct part *all;
	size_t count, room;
};

static struct part *part_of(struct job *job, int32_t number)
{
	struct part *last = job->count ? &job->all[job->count - 1] : NULL;

	if (last && last->number == number)
		return last;
	if (!grow((void **)&job->all, &job->room, job->count, sizeof(*job->all)))
		return NULL;
	last = &job->all[job->count++];
	*last = (struct part){ .number = number };
	return last;
}

static int part_row(const struct rows *rows, void *context)
{
	struct part *part = part_of(context, (int32_t)rows_number(rows, 0, 0));

	if (!part || !grow((void **)&part->units, &part->room, part->count, sizeof(*part->units)) ||
	    !grow((void **)&part->values, &part->value_room, part->count, sizeof(*part->values)))
		return -ENOMEM;
	rows_copy_text(rows, 1, part->host, sizeof(part->host));
	part->units[part->count] = rows_number(rows, 2, 0);
	part->values[part->count++] = rows_number(rows, 3, 0);
	return 0;
}

static void job_fini(struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		free(job->all[i].units);
		free(job->all[i].values);
	}
	free(job->all);
}

static int read_job(const char *target, enum compare_by_part part, char *path, struct job *job,
		    void (*opened)(struct tables *tables), struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = tables_own_memory() };
	struct tables *tables = NULL;
	int rc = target_resolve(target, path, KYMO_PATH_BYTES, err);

	if (!rc)
		rc = tables_open(path, &options, &tables, err);
	if (!rc) {
		opened(tables);
		rc = rows_each(tables, parts[part].sql, part_row, job, err);
		opened(NULL);
	}
	tables_close(tables);
	if (rc == -ENOMEM)
		error_set(err, ENOMEM, "no memory for the %s to compare", parts[part].many);
	if (!rc && !job->count)
		rc = error_set(err, ENODATA,
			       "%s has no %s with steps or collectives: --by %s needs a job",
			       target, parts[part].many, parts[part].word);
	return rc;
}

/* ---- series ---------------------------------------------------------------------------------- */

static struct compare_item *compare_by_add(struct compare_by *by, const struct part *part)
{
	struct compare *compare = &by->compare;
	struct compare_item *item;
	char name[128];

	if (!grow((void **)&compare->items, &compare->item_room, compare->item_count,
		  sizeof(*compare->items)))
		return NULL;
	item = &compare->items[compare->item_count];
	*item = (struct compare_item){ .kind = COMPARE_MODULE };
	snprintf(name, sizeof(name), "%s %d%s%s", parts[by->part].one, part->number,
		 by->part == COMPARE_BY_RANK && part->host[0] ? "  " : "",
		 by->part == COMPARE_BY_RANK ? part->host : "");
	item->name = strdup(name);
	item->series = calloc(2, sizeof(item->series[0]));
	if (!item->name || !item->series) {
		free(item->name);
		free(item->series);
		return NULL;
	}
	compare->item_count++;
	return item;
}

static int set_series(struct compare_series *series, const double *values, size_t count)
{
	size_t warmup = compare_stats_warmup(values, count);

	series->count = count - warmup;
	series->values = malloc((series->count + 1) * sizeof(double));
	if (!series->values)
		return -ENOMEM;
	memcpy(series->values, values + warmup, series->count * sizeof(double));
	return 0;
}

static double compare_by_mean(const struct part *part)
{
	double sum = 0;

	for (size_t i = 0; i < part->count; i++)
		sum += part->values[i];
	return sum / (double)part->count;
}

static int by_mean(const void *left, const void *right)
{
	double a = compare_by_mean(*(const struct part *const *)left);
	double b = compare_by_mean(*(const struct part *const *)right);

	return a < b ? -1 : a > b;
}

/* The rank whose own time is the median of all; of two in the middle the faster one. A median of
   each step would be no rank: it is above most ranks if one is slow. NULL: out of memory. */
static const struct part *median_part(const struct job *job)
{
	const struct part **order = malloc((job->count + 1) * sizeof(const struct part *)), *found;

	if (!order)
		return NULL;
	for (size_t i = 0; i < job->count; i++)
		order[i] = &job->all[i];
	qsort(order, job->count, sizeof(const struct part *), by_mean);
	found = order[(job->count - 1) / 2];
	free(order);
	return found;
}

static const struct part *compare_by_part_of(const struct job *job, int32_t number)
{
	for (size_t i = 0; i < job->count; i++)
		if (job->all[i].number == number)
			return &job->all[i];
	return NULL;
}

static int compare_in_one(struct compare_by *by, const struct job *job)
{
	const struct part *usual = by->part == COMPARE_BY_RANK ? median_part(job) : &job->all[0];
	int rc = usual ? 0 : -ENOMEM;

	by->usual = usual ? usual->number : 0;
	for (size_t i = 0; !rc && i < job->count; i++) {
		const struct part *part = &job->all[i];
		struct compare_item *item = part == usual ? NULL : compare_by_add(by, part);

		if (part == usual)
			continue;
		if (!item)
			return -ENOMEM;
		rc = set_series(&item->series[0], usual->values, usual->count);
		if (!rc)
			rc = set_series(&item->series[1], part->values, part->count);
	}
	return rc;
}

static int compare_two(struct compare_by *by, const struct job *jobs)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < jobs[0].count; i++) {
		const struct part *a = &jobs[0].all[i],
				  *b = compare_by_part_of(&jobs[1], a->number);
		struct compare_item *item = b ? compare_by_add(by, a) : NULL;

		if (!b)
			continue;
		if (!item)
			return -ENOMEM;
		rc = set_series(&item->series[0], a->values, a->count);
		if (!rc)
			rc = set_series(&item->series[1], b->values, b->count);
	}
	return rc;
}

/* ---- judging --------------------------------------------------------------------------------- */

static int judge_parts(struct compare *compare)
{
	struct compare_stats *all = calloc(compare->item_count + 1, sizeof(all[0]));
	int rc = all ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < compare->item_count; i++) {
		const struct compare_series *series = compare->items[i].series;
		struct compare_stats_run runs[2] = { { series[0].values, series[0].count },
						     { series[1].values, series[1].count } };
		struct compare_stats_side a = { &runs[0], 1 }, b = { &runs[1], 1 };

		if (compare_stats_estimate(&a, &b, NULL, &all[i]) == -ENOMEM)
			rc = -ENOMEM;
	}
	if (!rc)
		rc = compare_stats_correct(all, NULL, compare->item_count, COMPARE_STATS_ALPHA);
	for (size_t i = 0; !rc && i < compare->item_count; i++) {
		compare->items[i].stats = all[i];
		compare->items[i].apart = compare_are_apart(compare, &compare->items[i]);
	}
	free(all);
	return rc;
}

static const char *compare_by_unit(const struct compare_by *by)
{
	return by->part == COMPARE_BY_RANK ? "its own time" : "the time of a step";
}

static void say_one(struct buf *out, const struct compare_item *item)
{
	int bytes = (int)strcspn(item->name, " ");

	bytes += (int)strcspn(item->name + bytes + 1, " ") + 1;
	buf_print(out, "%.*s %.2f ×", bytes, item->name, item->stats.b / item->stats.a);
}

/* The parts that differ most come first. */
static int by_change(const void *left, const void *right)
{
	const struct compare_item *a = left, *b = right;
	double x = compare_at_stake(a), y = compare_at_stake(b);

	if (compare_differs(a) != compare_differs(b))
		return compare_differs(a) ? -1 : 1;
	return x > y ? -1 : x < y ? 1 : 0;
}

static void say_parts(struct compare_by *by)
{
	struct compare *compare = &by->compare;
	char beside[64] = "between A and B";
	struct buf out = { 0 };
	size_t differ = 0;

	if (by->target_count == 1)
		snprintf(beside, sizeof(beside), "from %s %d%s", parts[by->part].one, by->usual,
			 by->part == COMPARE_BY_RANK ? ", the median rank" : "");
	while (differ < compare->item_count && compare_differs(&compare->items[differ]))
		differ++;
	if (!differ)
		buf_print(&out, "No %s differs significantly in %s", parts[by->part].one,
			  compare_by_unit(by));
	else
		buf_print(&out, "%zu of %zu %s %s in %s %s: ", differ,
			  by->target_count == 2 ? compare->item_count : by->part_count[0],
			  parts[by->part].many, differ == 1 ? "differs" : "differ",
			  compare_by_unit(by), beside);
	for (size_t i = 0; i < differ && i < NAMED_MOST; i++) {
		buf_text(&out, i ? ", " : "");
		say_one(&out, &compare->items[i]);
	}
	buf_text(&out, differ > NAMED_MOST ? ", …" : ".");
	snprintf(compare->sentence, sizeof(compare->sentence), "%s", buf_get(&out));
	buf_fini(&out);
}

static void say_compared(struct compare_by *by)
{
	const char *many = parts[by->part].many;

	if (by->target_count == 2 && by->part_count[0] != by->part_count[1])
		snprintf(by->compared, sizeof(by->compared),
			 "A has %zu %s, B has %zu: the %zu that both have are compared.",
			 by->part_count[0], many, by->part_count[1], by->compare.item_count);
	else if (by->part == COMPARE_BY_RANK)
		snprintf(by->compared, sizeof(by->compared),
			 "Own time: from the end of a collective to the arrival at the next, "
			 "without waiting for other ranks.");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int compare_jobs(struct compare_by *by, const struct job *jobs, struct kymo_error *err)
{
	int rc;

	by->part_count[0] = jobs[0].count;
	by->part_count[1] = jobs[by->target_count - 1].count;
	if (by->target_count == 1 && jobs[0].count < 2)
		return error_set(err, EINVAL, "%s has one %s: --by %s needs two, or two jobs",
				 by->names[0], parts[by->part].one, parts[by->part].word);
	rc = by->target_count == 1 ? compare_in_one(by, &jobs[0]) : compare_two(by, jobs);
	if (!rc)
		rc = judge_parts(&by->compare);
	if (rc)
		return error_set(err, ENOMEM, "no memory to compare");
	if (!by->compare.item_count)
		return error_set(err, EINVAL, "A and B have no %s in common", parts[by->part].one);
	qsort(by->compare.items, by->compare.item_count, sizeof(*by->compare.items), by_change);
	say_parts(by);
	say_compared(by);
	return 0;
}

int compare_by_make(enum compare_by_part part, const char *const *targets, size_t target_count,
		    struct compare_by *out, void (*opened)(struct tables *tables),
		    struct kymo_error *err)
{
	struct job jobs[2] = { { 0 }, { 0 } };
	int rc = 0;

	*out = (struct compare_by){ .part = part, .target_count = target_count };
	out->compare.a_count = out->compare.b_count = 1;
	out->compare.fail_above = -1;
	out->names = calloc(target_count, sizeof(*out->names));
	if (!out->names)
		return error_set(err, ENOMEM, "no memory to compare");
	for (size_t i = 0; !rc && i < target_count; i++)
		rc = read_job(targets[i], part, out->names[i], &jobs[i], opened, err);
	if (!rc)
		rc = compare_jobs(out, jobs, err);
	job_fini(&jobs[0]);
	job_fini(&jobs[1]);
	return rc;
}

void compare_by_fini(struct compare_by *by)
{
	compare_fini(&by->compare);
	free(by->names);
}
