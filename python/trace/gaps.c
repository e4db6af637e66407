#include "trace.h"

#include "record/adapter.h"

static const char *const words[GAP_COUNT] = {
#define X(upper, word) word,
	GAPS(X)
#undef X
};

struct counted {
	uint64_t all;
	uint64_t untold; /* since the last row */
	uint64_t told_ticks;
};
static struct counted counted[GAP_COUNT];

/* About a millisecond at clock rates of 1 to 4 GHz: limits the number of rows. */
#define BETWEEN_ROWS_TICKS 2000000u

static void gaps_tell(enum gap gap, uint64_t since_ticks, uint64_t now)
{
	struct counted *count = &counted[gap];
	struct schema_gap_row row = { 0 };

	row.start_ticks = since_ticks;
	row.duration_ticks = now - since_ticks;
	row.events = count->untold;
	row.cause = kymo_name_full(words[gap], strlen(words[gap]), NULL, 0, 0, KYMO_SOURCE_PYTHON,
				   0);
	count->told_ticks = now;
	count->untold = 0;
	kymo__append(SCHEMA_GAPS, &row);
}

void gaps_add(enum gap gap, uint64_t since_ticks)
{
	struct counted *count = &counted[gap];
	uint64_t now = kymo_ticks();

	count->all++;
	count->untold++;
	if (kymo_enabled() && (!count->told_ticks || now - count->told_ticks >= BETWEEN_ROWS_TICKS))
		gaps_tell(gap, since_ticks, now);
}

void gaps_flush(void)
{
	for (int i = 0; i < GAP_COUNT; i++)
		if (counted[i].untold && kymo_enabled())
			gaps_tell((enum gap)i, counted[i].told_ticks, kymo_ticks());
}

PyObject *gaps_dict(void)
{
	PyObject *dict = PyDict_New();

	for (int i = 0; dict && i < GAP_COUNT; i++) {
		PyObject *number = PyLong_FromUnsignedLongLong(counted[i].all);

		if (!number || PyDict_SetItemString(dict, words[i], number))
			Py_CLEAR(dict);
		Py_XDECREF(number);
	}
	return dict;
}
