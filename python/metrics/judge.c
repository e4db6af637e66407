/* Compares two sides of many metrics, with the code of `kymo compare`. */
#include "metrics.h"

#include <math.h>
#include <string.h>

#include "views/compare/compare_stats.h"

struct pair {
	double *values[2];
	size_t count[2];
	double weight;
};

static double *take_values(PyObject *from, size_t *out_count)
{
	PyObject *list = PySequence_Fast(from, "expected a list of numbers");
	Py_ssize_t count = list ? PySequence_Fast_GET_SIZE(list) : 0;
	double *values = list ? PyMem_Malloc((size_t)(count + 1) * sizeof(*values)) : NULL;

	for (Py_ssize_t i = 0; values && i < count; i++) {
		values[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, i));
		if (values[i] == -1.0 && PyErr_Occurred()) {
			PyMem_Free(values);
			values = NULL;
		}
	}
	if (list && !values && !PyErr_Occurred())
		PyErr_NoMemory();
	Py_XDECREF(list);
	*out_count = (size_t)count;
	return values;
}

static int take_pair(PyObject *row, struct pair *out)
{
	PyObject *a, *b;

	if (!PyArg_ParseTuple(row, "OOd", &a, &b, &out->weight))
		return -1;
	out->values[0] = take_values(a, &out->count[0]);
	out->values[1] = out->values[0] ? take_values(b, &out->count[1]) : NULL;
	return out->values[1] ? 0 : -1;
}

static struct compare_stats_side judge_side_of(const struct pair *pair, int side,
					       struct compare_stats_run *run)
{
	*run = (struct compare_stats_run){ pair->values[side], pair->count[side] };
	return (struct compare_stats_side){ run, 1 };
}

/* The noise over all metrics, by weight. */
static struct compare_stats_noise listen_to(const struct pair *pairs, Py_ssize_t count)
{
	struct compare_stats_noise noise = { 0 };

	for (Py_ssize_t i = 0; i < count; i++) {
		struct compare_stats_run runs[2];
		struct compare_stats_side a = judge_side_of(&pairs[i], 0, &runs[0]);
		struct compare_stats_side b = judge_side_of(&pairs[i], 1, &runs[1]);

		if (runs[0].count && runs[1].count)
			compare_stats_listen(&noise, &a, &b, pairs[i].weight);
	}
	return noise;
}

static void estimate(const struct pair *pair, const struct compare_stats_noise *noise,
		     struct compare_stats *out)
{
	struct compare_stats_run runs[2];
	struct compare_stats_side a = judge_side_of(pair, 0, &runs[0]),
				  b = judge_side_of(pair, 1, &runs[1]);

	*out = (struct compare_stats){ .p = NAN, .low = NAN, .high = NAN };
	if (runs[0].count > 1 && runs[1].count > 1)
		compare_stats_estimate(&a, &b, noise, out);
}

static PyObject *judge_answer(const struct compare_stats *stats)
{
	return Py_BuildValue("(dddddO)", stats->low, stats->high, stats->p, stats->p_corrected,
			     stats->could_see, stats->significant ? Py_True : Py_False);
}

static PyObject *judge_pairs(const struct pair *pairs, Py_ssize_t count)
{
	struct compare_stats *stats = PyMem_Calloc((size_t)count + 1, sizeof(*stats));
	double *weights = PyMem_Calloc((size_t)count + 1, sizeof(*weights));
	PyObject *list = stats && weights ? PyList_New(count) : NULL;
	struct compare_stats_noise noise = listen_to(pairs, count);

	for (Py_ssize_t i = 0; list && i < count; i++) {
		estimate(&pairs[i], &noise, &stats[i]);
		weights[i] = pairs[i].weight;
	}
	if (list && compare_stats_correct(stats, weights, (size_t)count, COMPARE_STATS_ALPHA))
		Py_CLEAR(list);
	for (Py_ssize_t i = 0; list && i < count; i++) {
		PyObject *one = judge_answer(&stats[i]);

		if (!one)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, i, one);
	}
	if (!list && !PyErr_Occurred())
		PyErr_NoMemory();
	PyMem_Free(stats);
	PyMem_Free(weights);
	return list;
}

PyObject *judge(PyObject *module, PyObject *rows)
{
	PyObject *list = PySequence_Fast(rows, "judge takes a list of (values of a, of b, weight)");
	Py_ssize_t count = list ? PySequence_Fast_GET_SIZE(list) : 0;
	struct pair *pairs = list ? PyMem_Calloc((size_t)count + 1, sizeof(*pairs)) : NULL;
	PyObject *result = NULL;
	Py_ssize_t i = 0;

	(void)module;
	while (pairs && i < count && !take_pair(PySequence_Fast_GET_ITEM(list, i), &pairs[i]))
		i++;
	if (pairs && i == count)
		result = judge_pairs(pairs, count);
	for (i = 0; pairs && i < count; i++) {
		PyMem_Free(pairs[i].values[0]);
		PyMem_Free(pairs[i].values[1]);
	}
	PyMem_Free(pairs);
	Py_XDECREF(list);
	return result;
}

PyObject *warmup(PyObject *module, PyObject *from)
{
	size_t count, first;
	double *values = take_values(from, &count);

	(void)module;
	if (!values)
		return NULL;
	first = compare_stats_warmup(values, count);
	PyMem_Free(values);
	return PyLong_FromSize_t(first);
}
