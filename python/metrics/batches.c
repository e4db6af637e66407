#include "metrics.h"

#include <stdlib.h>

/* Merges pairs: half as many batches, each of twice as many samples. */
static void batches_merge(struct batches *batches)
{
	for (uint32_t i = 0; i < batches->count / 2; i++)
		batches->means[i] = (batches->means[2 * i] + batches->means[2 * i + 1]) / 2;
	batches->count /= 2;
	batches->size *= 2;
}

void batches_add(struct batches *batches, double value)
{
	if (KYMO__UNLIKELY(!batches->means)) {
		batches->means = calloc(BATCHES_MAX, sizeof(batches->means[0]));
		batches->size = 1;
		if (!batches->means)
			return; /* comparisons will have less data */
	}
	batches->sum += value;
	if (++batches->filled < batches->size)
		return;
	if (KYMO__UNLIKELY(batches->count == BATCHES_MAX)) {
		batches_merge(batches);
		if (batches->filled < batches->size)
			return;
	}
	batches->means[batches->count++] = batches->sum / (double)batches->filled;
	batches->sum = 0;
	batches->filled = 0;
}

void batches_clear(struct batches *batches)
{
	free(batches->means);
	*batches = (struct batches){ 0 };
}

PyObject *batches_list(const struct batches *batches, double scale)
{
	PyObject *list = PyList_New(batches->count);

	for (uint32_t i = 0; list && i < batches->count; i++) {
		PyObject *mean = PyFloat_FromDouble(batches->means[i] * scale);

		if (!mean)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, i, mean);
	}
	return list;
}
