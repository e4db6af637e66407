/*
 * Plain differences, whether or not they pass a test: the values of one side
 * hardly overlap those of the other. Tests account for values that depend on each other, as on a
 * busy machine, and then need many of them; a program that takes twice as long must not be hidden
 * by that.
 */
#include "views/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_LEAST 10 /* on each side */
#define RATIO_LEAST 1.3
#define TAIL 10 /* one in ten values of each side may overlap */

struct values {
	double *all;
	size_t count;
};

static int compare_apart_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The values of the runs [first, first + runs), sorted. */
static struct values gather_values(const struct compare_item *item, size_t first, size_t runs)
{
	struct values out = { NULL, 0 };
	size_t room = 0;

	for (size_t i = first; i < first + runs; i++)
		room += item->series[i].count;
	out.all = room ? malloc(room * sizeof(*out.all)) : NULL;
	if (!out.all)
		return out;
	for (size_t i = first; i < first + runs; i++) {
		if (!item->series[i].count)
			continue;
		memcpy(out.all + out.count, item->series[i].values,
		       item->series[i].count * sizeof(*out.all));
		out.count += item->series[i].count;
	}
	qsort(out.all, out.count, sizeof(*out.all), compare_apart_by_value);
	return out;
}

static bool are_above(const struct values *high, const struct values *low)
{
	double least = high->all[high->count / TAIL];
	double most = low->all[low->count - 1 - low->count / TAIL];

	return least > most && high->all[high->count / 2] >= RATIO_LEAST * low->all[low->count / 2];
}

bool compare_are_apart(const struct compare *compare, const struct compare_item *item)
{
	struct values a = gather_values(item, 0, compare->a_count);
	struct values b = gather_values(item, compare->a_count, compare->b_count);
	bool apart = a.count >= VALUES_LEAST && b.count >= VALUES_LEAST &&
		     (are_above(&a, &b) || are_above(&b, &a));

	free(a.all);
	free(b.all);
	return apart;
}
