#include "store/clocks/clock_bounds.h"

#include <math.h>
#include <stdlib.h>

#include "store/clocks/clock_lines.h"
#include "store/parallel.h"

#define ROUNDS_MOST 8
#define ROUND_GAIN 0.98 /* a round that leaves more than this of the errors is the last */
#define FARTHEST 1e12 /* ns from the fit: no bound */
#define PARTS 4u /* of the collectives, whose middles are compared */
#define PART_LEAST 16u /* collectives of each, for a comparison */
/* How much longer one host may take than another to notice the last arrival, at best, as a part of
   that time. */
#define UNLIKE 0.25

/* What is left for a piece of a fit. */
struct bounds_piece {
	struct clock_lines lines;
	int64_t first_ns, last_ns; /* own times of its calls */
	size_t used;
};

/* What is known of it at the first or the last call. */
struct bounds_end {
	struct clock_lines_interval certain; /* by causality alone */
	struct clock_lines_interval likely; /* and by the drift that the ends show */
	struct clock_lines_interval middles; /* of what parts of the collectives allow */
};

struct bounds_result {
	int64_t first_ns, last_ns;
	size_t used, parts;
	struct bounds_end first, last;
};

/* The last arrival at a collective, on the common axis. */
struct bounds_meeting {
	double from, to;
	size_t hosts;
	bool wrong; /* the fits contradict it */
};

struct bounds_work {
	const struct clock_bounds *in;
	size_t *piece_of; /* by domain: its first piece */
	struct bounds_piece *pieces;
	struct bounds_meeting *meetings;
	struct bounds_result *results; /* of each piece */
	uint32_t part; /* collectives that count; PARTS: all */
	bool drifts; /* drifts are limited to what the ends show */
};

static bool is_bounded(const struct clock_bounds *in, uint32_t domain)
{
	return domain == in->reference || in->fits[domain].count;
}

/* -1: the call lies on both sides of a step. */
static int piece_of(const struct clock_fit *fit, const struct clock_call *call)
{
	int at = 0;

	while ((uint32_t)at + 1 < fit->count && call->end_ns >= fit->pieces[at + 1].from_ns)
		at++;
	return at && call->arrival_ns < fit->pieces[at].from_ns ? -1 : at;
}

/* ---- the moments of collectives -------------------------------------------------------------- */

static bool is_in_part(const struct bounds_work *work, uint32_t meeting)
{
	return work->part == PARTS || (meeting * 2654435761u >> 24) % PARTS == work->part;
}

static void meetings_begin(struct bounds_work *work)
{
	for (size_t i = 0; i < work->in->meeting_count; i++) {
		work->meetings[i].from = -INFINITY;
		work->meetings[i].to = INFINITY;
		work->meetings[i].hosts = 0;
	}
}

static void meeting_take(struct bounds_meeting *meeting, double from, double to)
{
	meeting->from = fmax(meeting->from, from);
	meeting->to = fmin(meeting->to, to);
	meeting->hosts++;
}

static double slack_of(const struct bounds_work *work, uint32_t domain)
{
	return (double)work->in->slack_ns[domain];
}

/* Times are so large that a double would round them to some ns; that is less than the slack. */
static void take_bounds(struct bounds_work *work, const struct clock_call *call,
			struct bounds_meeting *meeting)
{
	const struct clock_bounds *in = work->in;
	const double slack = slack_of(work, call->domain);
	const struct clock_lines *lines;
	struct clock_lines_interval at_arrival, at_end;
	int piece;

	if (call->domain == in->reference) {
		meeting_take(meeting, (double)call->arrival_ns - slack,
			     (double)call->end_ns + slack);
		return;
	}
	piece = piece_of(&in->fits[call->domain], call);
	if (piece < 0)
		return;
	lines = &work->pieces[work->piece_of[call->domain] + (size_t)piece].lines;
	at_arrival = clock_lines_at(lines, call->arrival_ns);
	at_end = clock_lines_at(lines, call->end_ns);
	meeting_take(meeting, (double)(call->arrival_ns - lines->base_ns) - at_arrival.high - slack,
		     (double)(call->end_ns - lines->base_ns) - at_end.low + slack);
}

static void take_fits(struct bounds_work *work, const struct clock_call *call,
		      struct bounds_meeting *meeting)
{
	const struct clock_fit *fit = &work->in->fits[call->domain];
	int piece = fit->count ? piece_of(fit, call) : 0;
	double error = slack_of(work, call->domain), offset = 0;

	if (piece < 0)
		return;
	if (fit->count) {
		offset = clock_fit_offset(&fit->pieces[piece], call->end_ns);
		error += (double)fit->pieces[piece].error_ns;
	}
	meeting_take(meeting, (double)call->arrival_ns - offset - error,
		     (double)call->end_ns - offset + error);
}

static void each_call(struct bounds_work *work,
		      void (*take)(struct bounds_work *work, const struct clock_call *call,
				   struct bounds_meeting *meeting))
{
	meetings_begin(work);
	for (size_t i = 0; i < work->in->calls->count; i++) {
		const struct clock_call *call = &work->in->calls->list[i];

		if (is_bounded(work->in, call->domain) && is_in_part(work, work->in->meeting_of[i]))
			take(work, call, &work->meetings[work->in->meeting_of[i]]);
	}
}

/* Calls that were paired wrongly, and times that a clock showed twice, would bound others. */
static void find_wrong(struct bounds_work *work)
{
	each_call(work, take_fits);
	for (size_t i = 0; i < work->in->meeting_count; i++)
		work->meetings[i].wrong = work->meetings[i].hosts > 1 &&
					  work->meetings[i].from > work->meetings[i].to;
}

/* ---- the clocks ------------------------------------------------------------------------------ */

static struct clock_lines_interval drift_of(const struct bounds_work *work,
					    const struct clock_fit_piece *piece)
{
	struct clock_lines_interval any = CLOCK_LINES_ANY_DRIFT;
	double drift = piece->ends_drift * 1e9, error = piece->ends_drift_error * 1e9;

	if (!work->drifts || error < 0 || fabs(drift) > any.high)
		return any;
	return (struct clock_lines_interval){ fmax(any.low, drift - error),
					      fmin(any.high, drift + error), 0 };
}

static void pieces_begin(struct bounds_work *work, uint32_t domain)
{
	const struct clock_fit *fit = &work->in->fits[domain];
	const struct clock_lines_interval anywhere = { -FARTHEST, FARTHEST, 0 };

	for (uint32_t i = 0; i < fit->count; i++)
		clock_lines_begin(&work->pieces[work->piece_of[domain] + i].lines,
				  fit->pieces[i].t0_ns, llrint(fit->pieces[i].offset_ns), anywhere,
				  drift_of(work, &fit->pieces[i]));
}

static void piece_add(struct bounds_piece *piece, const struct clock_call *call,
		      const struct bounds_meeting *meeting, double slack)
{
	struct clock_lines kept = piece->lines;
	const double base = (double)piece->lines.base_ns;

	if (!piece->used++ || call->end_ns < piece->first_ns)
		piece->first_ns = call->end_ns;
	if (piece->used == 1 || call->end_ns > piece->last_ns)
		piece->last_ns = call->end_ns;
	if (clock_lines_below(&kept, call->end_ns,
			      (double)call->end_ns - base - meeting->from + slack) &&
	    clock_lines_above(&kept, call->arrival_ns,
			      (double)call->arrival_ns - base - meeting->to - slack))
		piece->lines = kept;
}

static void bound_domain(size_t domain, void *context)
{
	struct bounds_work *work = context;
	const struct clock_bounds *in = work->in;
	const struct clock_fit *fit = &in->fits[domain];
	struct bounds_piece *pieces = &work->pieces[work->piece_of[domain]];

	if (domain == in->reference || !fit->count)
		return;
	for (uint32_t i = 0; i < fit->count; i++)
		pieces[i].used = 0;
	for (size_t i = in->first_of[domain]; i < in->first_of[domain + 1]; i++) {
		const struct clock_call *call = &in->calls->list[in->calls_of[i]];
		const struct bounds_meeting *meeting =
			&work->meetings[in->meeting_of[in->calls_of[i]]];
		int piece = piece_of(fit, call);

		if (piece >= 0 && !meeting->wrong && meeting->hosts > 1 &&
		    is_in_part(work, in->meeting_of[in->calls_of[i]]))
			piece_add(&pieces[piece], call, meeting, slack_of(work, (uint32_t)domain));
	}
}

static double piece_error(const struct bounds_piece *piece)
{
	struct clock_lines_interval first = clock_lines_at(&piece->lines, piece->first_ns);
	struct clock_lines_interval last = clock_lines_at(&piece->lines, piece->last_ns);

	return fmax(first.high - first.low, last.high - last.low) / 2;
}

static double sum_of_errors(const struct bounds_work *work)
{
	double sum = 0;

	for (size_t i = 0; i < work->piece_of[work->in->domains]; i++)
		if (work->pieces[i].used)
			sum += piece_error(&work->pieces[i]);
	return sum;
}

static void spread_bounds(struct bounds_work *work, uint32_t part, bool drifts)
{
	double before = INFINITY;

	work->part = part;
	work->drifts = drifts;
	for (uint32_t d = 0; d < work->in->domains; d++)
		pieces_begin(work, d);
	for (int round = 0; round < ROUNDS_MOST; round++) {
		double sum;

		each_call(work, take_bounds);
		parallel_each(work->in->domains, bound_domain, work);
		sum = sum_of_errors(work);
		if (sum > before * ROUND_GAIN)
			return;
		before = sum;
	}
}

/* ---- the result ------------------------------------------------------------------------------ */

static void take_certain(struct bounds_work *work)
{
	for (size_t i = 0; i < work->piece_of[work->in->domains]; i++) {
		const struct bounds_piece *piece = &work->pieces[i];
		struct bounds_result *to = &work->results[i];

		to->first_ns = piece->first_ns;
		to->last_ns = piece->last_ns;
		to->used = piece->used;
		to->first.certain = clock_lines_at(&piece->lines, to->first_ns);
		to->last.certain = clock_lines_at(&piece->lines, to->last_ns);
	}
}

static void take_likely(struct bounds_work *work)
{
	for (size_t i = 0; i < work->piece_of[work->in->domains]; i++) {
		struct bounds_result *to = &work->results[i];

		to->first.likely = clock_lines_at(&work->pieces[i].lines, to->first_ns);
		to->last.likely = clock_lines_at(&work->pieces[i].lines, to->last_ns);
	}
}

static void bounds_widen(struct clock_lines_interval *all, double value, bool first)
{
	all->low = first ? value : fmin(all->low, value);
	all->high = first ? value : fmax(all->high, value);
}

static void take_middles(struct bounds_work *work)
{
	for (size_t i = 0; i < work->piece_of[work->in->domains]; i++) {
		const struct clock_lines *lines = &work->pieces[i].lines;
		struct bounds_result *to = &work->results[i];

		if (work->pieces[i].used < PART_LEAST)
			continue;
		bounds_widen(&to->first.middles, clock_lines_at(lines, to->first_ns).best,
			     !to->parts);
		bounds_widen(&to->last.middles, clock_lines_at(lines, to->last_ns).best,
			     !to->parts);
		to->parts++;
	}
}

static struct clock_lines_interval around(double value, double error)
{
	return (struct clock_lines_interval){ value - error, value + error, value };
}

static struct clock_lines_interval within(struct clock_lines_interval a,
					  struct clock_lines_interval b)
{
	struct clock_lines_interval both = { fmax(a.low, b.low), fmin(a.high, b.high), 0 };

	both.best = (both.low + both.high) / 2;
	return both;
}

/* Hosts notice the last arrival about equally fast at best, so the truth is near the middle of what
   causality allows. How near: that is what the middles of parts of the collectives show, which have
   fewer chances of a fast one each. */
static struct clock_lines_interval near_middle(const struct bounds_end *end)
{
	double half = (end->likely.high - end->likely.low) / 2;

	return around(end->likely.best, UNLIKE * half + (end->middles.high - end->middles.low) / 2);
}

/* Both estimates, within what is certain. A rank that is always late makes the bounds of one side
   loose: then the middle contradicts the ends, and these count. */
static struct clock_lines_interval settle_end(const struct bounds_end *end, double by_ends,
					      double error, bool parts)
{
	struct clock_lines_interval ends = within(end->certain, around(by_ends, error)), both;

	if (ends.low > ends.high)
		return end->certain;
	both = within(ends, near_middle(end));
	return parts && both.low <= both.high ? both : ends;
}

static void piece_settle(const struct bounds_result *result, struct clock_fit_piece *piece)
{
	const double base = rint(piece->offset_ns), error = (double)piece->error_ns;
	const bool parts = result->parts == PARTS;
	struct clock_lines_interval first = settle_end(
		&result->first, clock_fit_offset(piece, result->first_ns) - base, error, parts);
	struct clock_lines_interval last = settle_end(
		&result->last, clock_fit_offset(piece, result->last_ns) - base, error, parts);
	double span = (double)(result->last_ns - result->first_ns);

	piece->t0_ns = result->first_ns;
	piece->offset_ns = base + first.best;
	piece->drift = span > 0 ? (last.best - first.best) / span : 0;
	piece->error_ns = (int64_t)ceil(fmax(first.high - first.low, last.high - last.low) / 2);
}

static void settle_domain(const struct bounds_work *work, uint32_t domain)
{
	struct clock_fit *fit = &work->in->fits[domain];
	const struct bounds_result *results = &work->results[work->piece_of[domain]];

	for (uint32_t i = 0; i < fit->count; i++)
		if (results[i].used)
			piece_settle(&results[i], &fit->pieces[i]);
}

static bool work_make_room(struct bounds_work *work)
{
	const struct clock_bounds *in = work->in;
	size_t count;

	work->meetings = calloc(in->meeting_count + 1, sizeof(*work->meetings));
	work->piece_of = calloc(in->domains + 1, sizeof(*work->piece_of));
	if (!work->piece_of)
		return false;
	for (uint32_t d = 0; d < in->domains; d++)
		work->piece_of[d + 1] = work->piece_of[d] + in->fits[d].count;
	count = work->piece_of[in->domains] + 1;
	work->pieces = calloc(count, sizeof(*work->pieces));
	work->results = calloc(count, sizeof(*work->results));
	return work->meetings && work->pieces && work->results;
}

static void bounds_settle(struct bounds_work *work)
{
	work->part = PARTS;
	find_wrong(work);
	spread_bounds(work, PARTS, false);
	take_certain(work);
	spread_bounds(work, PARTS, true);
	take_likely(work);
	for (uint32_t part = 0; part < PARTS; part++) {
		spread_bounds(work, part, true);
		take_middles(work);
	}
	for (uint32_t d = 0; d < work->in->domains; d++)
		settle_domain(work, d);
}

void clock_bounds_apply(const struct clock_bounds *bounds)
{
	struct bounds_work work = { .in = bounds };

	if (work_make_room(&work))
		bounds_settle(&work);
	free(work.meetings);
	free(work.piece_of);
	free(work.pieces);
	free(work.results);
}
