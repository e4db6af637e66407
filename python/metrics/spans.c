/* Union of time spans, and the gaps between them. */
#include "metrics.h"

#include <string.h>

void spans_init(struct spans *spans, struct span *list, uint32_t room, uint64_t start)
{
	*spans = (struct spans){ .list = list, .room = room, .until = start };
}

static void sum_add(struct spans_sum *sum, uint64_t before, struct span span)
{
	uint64_t gap = span.start > before ? span.start - before : 0;

	sum->busy += span.end - span.start;
	sum->gaps += gap > 0;
	sum->longest_gap = gap > sum->longest_gap ? gap : sum->longest_gap;
}

static void settle_half(struct spans *spans)
{
	struct spans_sum sum = { spans->busy, spans->gaps, spans->longest_gap };
	uint32_t half = spans->count / 2;

	for (uint32_t i = 0; i < half; i++) {
		sum_add(&sum, spans->until, spans->list[i]);
		spans->until = spans->list[i].end;
	}
	spans->busy = sum.busy;
	spans->gaps = sum.gaps;
	spans->longest_gap = sum.longest_gap;
	spans->count -= half;
	memmove(spans->list, spans->list + half, spans->count * sizeof(spans->list[0]));
}

/* Replaces the spans [first, last), which the new one contains. */
static void replace(struct spans *spans, uint32_t first, uint32_t last, struct span span)
{
	memmove(spans->list + first + 1, spans->list + last,
		(spans->count - last) * sizeof(spans->list[0]));
	spans->list[first] = span;
	spans->count = spans->count + 1 - (last - first);
}

bool spans_add(struct spans *spans, uint64_t start, uint64_t end)
{
	uint32_t first, last;

	if (spans->count == spans->room)
		settle_half(spans);
	if (start < spans->until) {
		spans->not_exact++;
		start = spans->until;
	}
	if (start >= end)
		return false;
	/* The new span is nearly always the newest: search from the back. */
	for (last = spans->count; last && spans->list[last - 1].start > end;)
		last--;
	for (first = last; first && spans->list[first - 1].end >= start;)
		first--;
	if (first < last) {
		start = spans->list[first].start < start ? spans->list[first].start : start;
		end = spans->list[last - 1].end > end ? spans->list[last - 1].end : end;
	}
	replace(spans, first, last, (struct span){ start, end });
	return true;
}

struct spans_sum spans_sum(const struct spans *spans, uint64_t until)
{
	struct spans_sum sum = { spans->busy, spans->gaps, spans->longest_gap };
	uint64_t before = spans->until;

	for (uint32_t i = 0; i < spans->count && spans->list[i].start < until; i++) {
		struct span span = spans->list[i];

		span.end = span.end < until ? span.end : until;
		sum_add(&sum, before, span);
		before = span.end;
	}
	if (before < until)
		sum_add(&sum, before, (struct span){ until, until });
	return sum;
}
