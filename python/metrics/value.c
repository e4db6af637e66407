#include "metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *value_type;

/* ---- a histogram of any numbers: sign, exponent, four bits; a bucket is 6 % wide ------------ */

static uint16_t key_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	/* Orders the keys as the numbers. */
	bits = bits >> 63 ? ~bits : bits | 1ull << 63;
	return (uint16_t)(bits >> 48);
}

static double start_of(uint32_t key)
{
	uint64_t bits = (uint64_t)key << 48;
	double number;

	bits = bits >> 63 ? bits & ~(1ull << 63) : ~bits;
	memcpy(&number, &bits, sizeof(number));
	return number;
}

static uint32_t value_find(const struct value *value, uint16_t key)
{
	uint32_t low = 0, high = value->bucket_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (value->buckets[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void count_in_bucket(struct value *value, double number)
{
	uint16_t key = key_of(number);
	uint32_t at = value_find(value, key);

	if (at < value->bucket_count && value->buckets[at].key == key) {
		value->buckets[at].count++;
		return;
	}
	if (value->bucket_count == value->bucket_room) {
		uint32_t room = value->bucket_room ? value->bucket_room * 2 : 16;
		struct bucket *more = realloc(value->buckets, room * sizeof(*more));

		if (!more)
			return;
		value->buckets = more;
		value->bucket_room = room;
	}
	memmove(&value->buckets[at + 1], &value->buckets[at],
		(value->bucket_count - at) * sizeof(value->buckets[0]));
	value->buckets[at] = (struct bucket){ 1, key };
	value->bucket_count++;
}

static double quantile_of_buckets(const struct value *value, double share)
{
	double all = 0, before = 0, start, end;
	uint32_t at = 0;

	for (uint32_t i = 0; i < value->bucket_count; i++)
		all += (double)value->buckets[i].count;
	while (at + 1 < value->bucket_count &&
	       before + (double)value->buckets[at].count < share * all)
		before += (double)value->buckets[at++].count;
	if (!value->bucket_count)
		return NAN;
	start = start_of(value->buckets[at].key);
	end = start_of(value->buckets[at].key + 1u);
	if (isfinite(start) && isfinite(end))
		start += (end - start) * (share * all - before) / (double)value->buckets[at].count;
	return fmin(fmax(start, value->min), value->max);
}

static int by_number(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Exact while all values are kept. */
static void quantiles(const struct value *value, const double *shares, double *out, int count)
{
	const struct batches *batches = &value->batches;
	double *sorted = NULL;

	if (batches->size == 1 && batches->count == value->count && !isnan(value->sum))
		sorted = malloc(batches->count * sizeof(*sorted));
	for (int i = 0; !sorted && i < count; i++)
		out[i] = quantile_of_buckets(value, shares[i]);
	if (!sorted)
		return;
	memcpy(sorted, batches->means, batches->count * sizeof(*sorted));
	qsort(sorted, batches->count, sizeof(*sorted), by_number);
	for (int i = 0; i < count; i++) {
		double place = shares[i] * (batches->count - 1);
		uint32_t below = (uint32_t)place;
		uint32_t above = below + 1 < batches->count ? below + 1 : below;

		out[i] = sorted[below] == sorted[above]
				 ? sorted[below]
				 : sorted[below] +
					   (sorted[above] - sorted[below]) * (place - below);
	}
	free(sorted);
}

/* ---- values -------------------------------------------------------------------------------- */

static void value_clear(struct value *value)
{
	value->count = value->first_at = value->last_at = 0;
	value->sum = value->mean = value->square = value->min = value->max = value->last = 0;
	batches_clear(&value->batches);
	free(value->buckets);
	value->buckets = NULL;
	value->bucket_count = value->bucket_room = 0;
}

void value_current(struct value *value)
{
	if (KYMO__LIKELY(value->generation == metrics_generation))
		return;
	value->generation = metrics_generation;
	value_clear(value);
}

/* Welford's algorithm: the spread of large values that are close together stays exact. */
static void spread(struct value *value, double number)
{
	double off = number - value->mean;

	value->mean += off / (double)value->count;
	value->square += off * (number - value->mean);
}

void value_add(struct value *value, double number)
{
	uint64_t now = metrics_now();

	value_current(value);
	if (!value->count) {
		value->first_at = now;
		value->min = value->max = number;
	}
	value->last_at = now;
	value->count++;
	value->sum += number;
	value->last = number;
	value->min = fmin(value->min, number); /* ignores NaN */
	value->max = fmax(value->max, number);
	spread(value, number);
	if (!isnan(number))
		count_in_bucket(value, number);
	batches_add(&value->batches, number);
	if (!kymo_enabled())
		return;
	if (KYMO__UNLIKELY(!value->id))
		value->id = name_id(value->name, KYMO_SOURCE_PYTHON, value->instance);
	kymo_counter_id(value->id, number);
}

PyObject *value_stats(struct value *value)
{
	static const double shares[] = { 0.5, 0.9, 0.99 };
	double at[3] = { 0, 0, 0 };
	double count = (double)value->count;

	if (value->count)
		quantiles(value, shares, at, 3);
	return Py_BuildValue("{sK sd sd sd sd sd sd sd sd sd}", "count",
			     (unsigned long long)value->count, "mean",
			     count > 0 ? value->sum / count : 0.0, "std",
			     count > 1 ? sqrt(value->square / (count - 1)) : 0.0, "min", value->min,
			     "max", value->max, "p50", at[0], "p90", at[1], "p99", at[2], "last",
			     value->last, "sum", value->sum);
}

/* ---- the object, internal: not visible from Python ------------------------------------------- */

PyObject *value_new(PyObject *name, uint32_t instance)
{
	struct value *value = (struct value *)value_type->tp_alloc(value_type, 0);

	if (!value)
		return NULL;
	Py_INCREF(name);
	value->name = name;
	value->instance = instance;
	value->generation = metrics_generation;
	return (PyObject *)value;
}

static void value_dealloc(PyObject *self)
{
	struct value *value = (struct value *)self;
	PyTypeObject *type = Py_TYPE(self);

	value_clear(value);
	Py_CLEAR(value->name);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Values under one name." },
	{ Py_tp_dealloc, value_dealloc },
	{ 0, NULL },
};

PyType_Spec value_spec = {
	.name = "kymo._metrics.Value",
	.basicsize = sizeof(struct value),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};
