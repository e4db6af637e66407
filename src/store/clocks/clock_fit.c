#include "store/clocks/clock_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/clocks/clock_lines.h"

#define FIT_CONFIRM 4u /* contradictions in a row that make a step */
#define FIT_ENOUGH 8u /* collectives for an estimate from ends */
#define FIT_BLOCKS 16u
/* How much longer one host may take than the other to notice the last arrival, as a part of the
   latency. Ranks of one host that were aligned as if they had two clocks differed by up to 0.18,
   at a load of eight programs for each core, and also if one of them was always the last. */
#define FIT_UNLIKE 0.25
#define FIT_WRONG_SHARE 0.05 /* contradictions beyond this: refused */

double clock_fit_offset(const struct clock_fit_piece *piece, int64_t t_ns)
{
	return piece->offset_ns + piece->drift * (double)(t_ns - piece->t0_ns);
}

/* ---- the lines that causality allows -------------------------------------------------------- */

/* The bounds of the offset at its time. */
static int64_t low_of(const struct clock_fit_event *event, int64_t slack_ns)
{
	return event->arrival_ns - event->first_end_ns - slack_ns;
}

static int64_t high_of(const struct clock_fit_event *event, int64_t slack_ns)
{
	return event->end_ns - event->last_ns + slack_ns;
}

static bool lines_begin(struct clock_lines *lines, const struct clock_fit_event *event,
			int64_t slack_ns)
{
	int64_t low = low_of(event, slack_ns), high = high_of(event, slack_ns);
	int64_t base = low + (high - low) / 2;

	clock_lines_begin(
		lines, event->end_ns, base,
		(struct clock_lines_interval){ (double)(low - base), (double)(high - base), 0 },
		CLOCK_LINES_ANY_DRIFT);
	return lines->count;
}

/* False: no line is left, and *lines is as before. */
static bool lines_add(struct clock_lines *lines, const struct clock_fit_event *event,
		      int64_t slack_ns)
{
	struct clock_lines kept = *lines;
	int64_t low = low_of(event, slack_ns), high = high_of(event, slack_ns);

	if (!clock_lines_below(&kept, event->end_ns, (double)(high - lines->base_ns)) ||
	    !clock_lines_above(&kept, event->arrival_ns, (double)(low - lines->base_ns)))
		return false;
	*lines = kept;
	return true;
}

/* ---- the estimate from ends ----------------------------------------------------------------- */

struct blocks {
	size_t count;
	double at[FIT_BLOCKS], offset[FIT_BLOCKS], latency[FIT_BLOCKS];
};

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double quantile_of(double *values, size_t count, double share)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return values[(size_t)(share * (double)(count - 1) + 0.5)];
}

/* The usual difference between both ends, within what causality allows. */
static double end_difference(const struct clock_lines *lines, const struct clock_fit_event *events,
			     size_t count, double *room)
{
	struct clock_lines_interval allowed = clock_lines_at(lines, events[count / 2].end_ns);

	for (size_t i = 0; i < count; i++)
		room[i] = (double)(events[i].end_ns - lines->base_ns - events[i].other_end_ns);
	return fmin(allowed.high, fmax(allowed.low, quantile_of(room, count, 0.5)));
}

static double middle_of(const struct clock_lines *lines, const struct clock_fit_event *events,
			size_t count)
{
	double at = 0;

	for (size_t i = 0; i < count; i++)
		at += clock_lines_seconds(lines, events[i].end_ns) / (double)count;
	return at;
}

/* How long after the last arrival this host and the other one left. */
static void fill_leaving(const struct clock_lines *lines, const struct clock_fit_event *events,
			 size_t count, double *own, double *other)
{
	double usual = end_difference(lines, events, count, own);

	for (size_t i = 0; i < count; i++) {
		const struct clock_fit_event *event = &events[i];
		double arrival = (double)(event->arrival_ns - lines->base_ns - event->last_ns) -
				 usual;
		double last = event->all_last_ns == CLOCK_FIT_UNKNOWN
				      ? fmax(0, arrival)
				      : (double)(event->all_last_ns - event->last_ns);

		own[i] = (double)(event->end_ns - lines->base_ns - event->last_ns) - last;
		other[i] = (double)(event->other_end_ns - event->last_ns) - last;
	}
}

/* drift: what is known of it. A quantile of times that drift apart would be one of the drift. */
static bool fill_block(struct blocks *blocks, const struct clock_lines *lines,
		       const struct clock_fit_event *events, size_t count, double drift)
{
	double *own = malloc(count * sizeof(*own)), *other = malloc(count * sizeof(*other));
	double at = middle_of(lines, events, count), mine, theirs;

	if (own && other) {
		fill_leaving(lines, events, count, own, other);
		for (size_t i = 0; i < count; i++)
			own[i] -= drift * (clock_lines_seconds(lines, events[i].end_ns) - at);
		mine = quantile_of(own, count, 0.25);
		theirs = quantile_of(other, count, 0.25);
		blocks->at[blocks->count] = at;
		blocks->offset[blocks->count] = mine - theirs;
		blocks->latency[blocks->count++] = fmax(0, theirs);
	}
	free(own);
	free(other);
	return own && other;
}

static bool fill_blocks(struct blocks *blocks, const struct clock_lines *lines,
			const struct clock_fit_event *events, size_t count, double drift)
{
	size_t wanted = count / FIT_ENOUGH < FIT_BLOCKS ? count / FIT_ENOUGH : FIT_BLOCKS;

	blocks->count = 0;
	for (size_t i = 0; i < wanted; i++) {
		size_t from = i * count / wanted, to = (i + 1) * count / wanted;

		if (!fill_block(blocks, lines, events + from, to - from, drift))
			return false;
	}
	return true;
}

/* The median of the slopes between all pairs. */
static double slope_of(const struct blocks *blocks)
{
	double slopes[FIT_BLOCKS * (FIT_BLOCKS - 1) / 2];
	size_t count = 0;

	for (size_t i = 0; i < blocks->count; i++)
		for (size_t k = i + 1; k < blocks->count; k++)
			if (blocks->at[k] > blocks->at[i])
				slopes[count++] = (blocks->offset[k] - blocks->offset[i]) /
						  (blocks->at[k] - blocks->at[i]);
	return count ? quantile_of(slopes, count, 0.5) : 0;
}

struct estimate {
	double middle, offset, slope; /* offset at the middle of the blocks */
	double raw_slope, raw_slope_error; /* before noise is left out */
	double error, slope_error; /* standard errors */
	double sure; /* how many of them are stated */
	double latency;
	double slack; /* of the recorded times */
};

/* Not a robust scale: a block that lies apart makes the stated error larger, as it should. */
static double residual_scale(const struct blocks *blocks, double slope, double middle,
			     double offset)
{
	double squares = 0;

	for (size_t i = 0; i < blocks->count; i++)
		squares += pow(blocks->offset[i] - offset - slope * (blocks->at[i] - middle), 2);
	return sqrt(squares / (double)(blocks->count - 2));
}

/* How many standard errors are stated: 99.9 % of Student's t distribution. Of a few blocks the
   scale itself is hardly known. */
static double sure(size_t blocks)
{
	static const double t[] = { 31.6, 12.9, 8.61, 6.87, 5.96, 5.41, 5.04,
				    4.78, 4.59, 4.44, 4.32, 4.22, 4.14 };
	const size_t last = sizeof(t) / sizeof(t[0]) - 1, at = blocks - 4;

	return t[at < last ? at : last];
}

static struct estimate estimate_of(const struct blocks *blocks)
{
	struct estimate out = { .slope = slope_of(blocks) };
	double values[FIT_BLOCKS], latencies[FIT_BLOCKS], squares = 0, scale;

	for (size_t i = 0; i < blocks->count; i++)
		out.middle += blocks->at[i] / (double)blocks->count;
	for (size_t i = 0; i < blocks->count; i++) {
		values[i] = blocks->offset[i] - out.slope * (blocks->at[i] - out.middle);
		latencies[i] = blocks->latency[i];
		squares += (blocks->at[i] - out.middle) * (blocks->at[i] - out.middle);
	}
	out.offset = quantile_of(values, blocks->count, 0.5);
	out.latency = quantile_of(latencies, blocks->count, 0.5);
	scale = residual_scale(blocks, out.slope, out.middle, out.offset);
	out.sure = sure(blocks->count);
	/* The standard error of a median is that much larger than that of a mean. */
	out.error = sqrt(M_PI_2) * scale / sqrt((double)blocks->count);
	out.slope_error = squares > 0 ? scale / sqrt(squares) : 0;
	out.raw_slope = out.slope;
	out.raw_slope_error = out.slope_error;
	/* Noise would be prolonged over the whole run; what is left out is stated. */
	if (fabs(out.slope) < 5 * out.slope_error) {
		out.slope_error += fabs(out.slope) / out.sure;
		out.slope = 0;
	}
	return out;
}

/* hypot() for numbers below 1e150. The one of glibc 2.35 would keep the wheel from glibc 2.34. */
static double length_of(double a, double b)
{
	return sqrt(a * a + b * b);
}

/* The truth may differ from the estimate by its noise and by what it cannot see. */
static struct clock_lines_interval estimate_at(const struct estimate *estimate, double seconds)
{
	double away = seconds - estimate->middle;
	double value = estimate->offset + estimate->slope * away;
	double error = estimate->sure * length_of(estimate->error, estimate->slope_error * away) +
		       FIT_UNLIKE * estimate->latency + estimate->slack;

	return (struct clock_lines_interval){ value - error, value + error, value };
}

/* ---- a piece -------------------------------------------------------------------------------- */

static struct clock_lines_interval narrowed(struct clock_lines_interval certain,
					    struct clock_lines_interval estimated)
{
	struct clock_lines_interval both = { fmax(certain.low, estimated.low),
					     fmin(certain.high, estimated.high), 0 };

	both.best = fmin(both.high, fmax(both.low, estimated.best));
	return both.low <= both.high ? both : certain;
}

static double error_of(struct clock_lines_interval interval)
{
	return fmax(interval.high - interval.best, interval.best - interval.low);
}

static void piece_through(struct clock_fit_piece *piece, const struct clock_lines *lines,
			  int64_t last_ns, struct clock_lines_interval first,
			  struct clock_lines_interval last)
{
	double change = last.best - first.best, error = fmax(error_of(first), error_of(last));

	piece->t0_ns = lines->t0_ns;
	piece->offset_ns = (double)lines->base_ns + first.best;
	piece->drift = last_ns > lines->t0_ns ? change / (double)(last_ns - lines->t0_ns) : 0;
	piece->error_ns = (int64_t)ceil(error);
}

/* Too few collectives to determine a drift: one value that both ends allow. */
static void without_drift(struct clock_lines_interval *first, struct clock_lines_interval *last)
{
	double low = fmax(first->low, last->low), high = fmin(first->high, last->high);

	if (low <= high)
		first->best = last->best = (low + high) / 2;
}

static bool piece_fit(struct clock_fit_piece *piece, const struct clock_lines *lines,
		      const struct clock_fit_event *events, size_t count, int64_t slack_ns)
{
	int64_t last_ns = events[count - 1].end_ns, others = 0;
	struct clock_lines_interval first = clock_lines_at(lines, lines->t0_ns),
				    last = clock_lines_at(lines, last_ns);
	struct blocks blocks;

	piece->ends_drift_error = -1;
	if (!fill_blocks(&blocks, lines, events, count, 0) ||
	    !fill_blocks(&blocks, lines, events, count, slope_of(&blocks)))
		return false;
	if (blocks.count >= 4) {
		struct estimate estimate = estimate_of(&blocks);

		estimate.slack = (double)slack_ns;
		piece->ends_drift = estimate.raw_slope / 1e9;
		piece->ends_drift_error = estimate.sure * estimate.raw_slope_error / 1e9;
		first = narrowed(first, estimate_at(&estimate, 0));
		last = narrowed(last, estimate_at(&estimate, clock_lines_seconds(lines, last_ns)));
	} else {
		without_drift(&first, &last);
	}
	piece_through(piece, lines, last_ns, first, last);
	for (size_t i = 0; i < count; i++)
		others = events[i].other_error_ns > others ? events[i].other_error_ns : others;
	piece->error_ns += others;
	piece->used = (uint32_t)count;
	return true;
}

/* ---- pieces --------------------------------------------------------------------------------- */

struct span {
	size_t from, to;
	struct clock_lines lines;
};

/* The longest span from `from` that lines fit; contradictions that are not confirmed by those after
   them are passed over. Returns how many these are. */
static size_t span_find(struct span *span, const struct clock_fit_event *events, size_t count,
			int64_t slack_ns)
{
	size_t wrong = 0, passed = 0, at = span->from;

	for (; at < count && !lines_begin(&span->lines, &events[at], slack_ns); at++)
		passed++;
	span->from = at;
	span->to = at < count ? at + 1 : at;
	for (at = span->to; at < count && wrong < FIT_CONFIRM; at++) {
		if (!lines_add(&span->lines, &events[at], slack_ns)) {
			wrong++;
			continue;
		}
		passed += wrong;
		wrong = 0;
		span->to = at + 1;
	}
	if (wrong < FIT_CONFIRM) {
		passed += wrong;
		span->to = count;
	}
	return passed;
}

static double away_from(const struct clock_lines *lines, const struct clock_fit_event *event)
{
	struct clock_lines_interval allowed = clock_lines_at(lines, event->end_ns);

	return fabs((double)(event->end_ns - event->other_end_ns - lines->base_ns) -
		    (allowed.low + allowed.high) / 2);
}

/* A rank that was suspended is late at its next collective, which then fits both lines: the ends
   decide to which it belongs. */
static void move_border(struct span *before, struct span *after,
			const struct clock_fit_event *events)
{
	size_t border = before->to;

	while (border > before->from + 1 && away_from(&after->lines, &events[border - 1]) <
						    away_from(&before->lines, &events[border - 1]))
		border--;
	before->to = after->from = border;
}

static bool span_fit(struct span *span, const struct clock_fit_event *events, int64_t slack_ns,
		     struct clock_fit_piece *out)
{
	span_find(span, events, span->to, slack_ns);
	return span->from < span->to &&
	       piece_fit(out, &span->lines, events + span->from, span->to - span->from, slack_ns);
}

/* Between the last collective of a piece and the first of the next. A clock that was set back has
   shown some times twice: there the later piece counts, and its error is the step. */
static void join_pieces(struct clock_fit_piece *before, struct clock_fit_piece *after,
			int64_t before_ns, int64_t after_ns)
{
	after->from_ns = after_ns > before_ns ? before_ns + (after_ns - before_ns) / 2 : after_ns;
	if (after_ns <= before_ns)
		after->error_ns += (int64_t)fabs(clock_fit_offset(after, after_ns) -
						 clock_fit_offset(before, after_ns));
}

static uint32_t find_spans(struct span spans[CLOCK_FIT_PIECES],
			   const struct clock_fit_event *events, size_t count, int64_t slack_ns,
			   size_t *contradictions)
{
	uint32_t found = 0;
	size_t at = 0;

	while (at < count && found < CLOCK_FIT_PIECES) {
		spans[found].from = at;
		*contradictions += span_find(&spans[found], events, count, slack_ns);
		at = spans[found].to;
		found += spans[found].from < count;
	}
	*contradictions += count - at;
	return found;
}

bool clock_fit(const struct clock_fit_event *events, size_t count, int64_t slack_ns,
	       struct clock_fit *out)
{
	struct span spans[CLOCK_FIT_PIECES];
	uint32_t found;

	memset(out, 0, sizeof(*out));
	found = find_spans(spans, events, count, slack_ns, &out->contradictions);
	if ((double)out->contradictions > FIT_WRONG_SHARE * (double)count ||
	    (found > 1 && count / found < FIT_ENOUGH)) {
		out->contradictions += !out->contradictions; /* pieces that are too short */
		return false;
	}
	for (uint32_t i = 0; i + 1 < found; i++)
		move_border(&spans[i], &spans[i + 1], events);
	for (uint32_t i = 0; i < found; i++) {
		if (!span_fit(&spans[i], events, slack_ns, &out->pieces[i])) {
			memset(out, 0, sizeof(*out));
			return false;
		}
		out->pieces[i].from_ns = events[spans[i].from].end_ns;
		if (i)
			join_pieces(&out->pieces[i - 1], &out->pieces[i],
				    events[spans[i - 1].to - 1].end_ns,
				    events[spans[i].from].arrival_ns);
	}
	out->count = found;
	return found > 0;
}
