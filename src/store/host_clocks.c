#include "store/host_clocks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/clocks/clock_bounds.h"
#include "store/clocks/clock_calls.h"
#include "store/clocks/clock_fit.h"
#include "store/recording_inside.h"

#define SLACK_NS 2000 /* of times that one machine's counter gave */
#define SLACK_IMPORTED_NS 15000 /* of device times, which a profiler converted */

/* ---- domains -------------------------------------------------------------------------------- */

static bool is_imported(const struct store_run *run)
{
	return !strcmp(run->run.boot_id, HOST_CLOCKS_IMPORTED);
}

static bool shares_clock(const struct store_run *a, const struct store_run *b)
{
	return a->run.boot_id[0] && !is_imported(a) && !strcmp(a->run.boot_id, b->run.boot_id);
}

/* Ranks of one trace have one number; processes without a rank belong to their run. */
static uint32_t domain_of_import(const struct recording *recording, size_t process)
{
	const struct store_process *all = recording->processes;

	for (size_t i = 0; i < process; i++)
		if (all[i].run == all[process].run && all[i].rank == all[process].rank)
			return all[i].domain;
	return UINT32_MAX;
}

static uint32_t find_domains(struct recording *recording)
{
	uint32_t *of_run = calloc(recording->run_count + 1, sizeof(*of_run)), count = 0;

	if (!of_run)
		return 0;
	for (size_t i = 0; i < recording->run_count; i++) {
		of_run[i] = UINT32_MAX;
		for (size_t k = 0; k < i && of_run[i] == UINT32_MAX; k++)
			if (shares_clock(&recording->runs[k], &recording->runs[i]))
				of_run[i] = of_run[k];
		if (of_run[i] == UINT32_MAX && !is_imported(&recording->runs[i]))
			of_run[i] = count++;
	}
	for (size_t i = 0; i < recording->process_count; i++) {
		struct store_process *process = &recording->processes[i];

		process->domain = of_run[process->run] != UINT32_MAX
					  ? of_run[process->run]
					  : domain_of_import(recording, i);
		if (process->domain == UINT32_MAX)
			process->domain = count++;
	}
	free(of_run);
	return count;
}

/* ---- aligning ------------------------------------------------------------------------------- */

/* A collective: what is known of it on the common axis, from the hosts that are aligned. */
struct meeting {
	size_t from, to; /* of the calls, by domain */
	bool known;
	int64_t last_ns, first_end_ns, other_end_ns, other_error_ns;
	int64_t all_last_ns; /* by the first round */
};

struct alignment {
	struct recording *recording;
	struct clock_calls calls;
	struct meeting *meetings;
	size_t meeting_count;
	size_t *first_of; /* by domain: places in calls_of; one more at the end */
	size_t *calls_of; /* calls, by domain */
	uint32_t *meeting_of; /* by call */
	struct clock_fit *fits; /* by domain */
	size_t *shared_of; /* by domain: calls that others take part in, too */
	size_t *known_of; /* and those whose collective has an aligned host */
	bool *done;
	size_t *events_of; /* by domain: collectives of its last fit */
	int64_t *slack_of; /* by domain */
	uint32_t domains, reference; /* UINT32_MAX: none shares a collective */
	struct clock_fit_event *events; /* room for those of one domain */
};

static const struct clock_fit_piece *piece_at(const struct clock_fit *fit, int64_t own_ns)
{
	uint32_t at = 0;

	while (at + 1 < fit->count && own_ns >= fit->pieces[at + 1].from_ns)
		at++;
	return &fit->pieces[at];
}

static int64_t aligned(const struct clock_fit *fit, int64_t own_ns)
{
	if (!fit->count)
		return own_ns;
	return own_ns - llrint(clock_fit_offset(piece_at(fit, own_ns), own_ns));
}

static int64_t error_at(const struct clock_fit *fit, int64_t own_ns)
{
	return fit->count ? piece_at(fit, own_ns)->error_ns : 0;
}

static bool alignment_make_room(struct alignment *a)
{
	const struct clock_calls *calls = &a->calls;

	a->meetings = calloc(calls->count + 1, sizeof(*a->meetings));
	a->meeting_of = calloc(calls->count + 1, sizeof(*a->meeting_of));
	a->first_of = calloc(a->domains + 2, sizeof(*a->first_of));
	a->calls_of = calloc(calls->count + 1, sizeof(*a->calls_of));
	a->fits = calloc(a->domains, sizeof(*a->fits));
	a->shared_of = calloc(a->domains, sizeof(*a->shared_of));
	a->known_of = calloc(a->domains, sizeof(*a->known_of));
	a->done = calloc(a->domains, sizeof(*a->done));
	a->events_of = calloc(a->domains, sizeof(*a->events_of));
	a->slack_of = calloc(a->domains, sizeof(*a->slack_of));
	a->events = calloc(calls->count + 1, sizeof(*a->events));
	return a->meetings && a->meeting_of && a->first_of && a->calls_of && a->fits &&
	       a->shared_of && a->known_of && a->done && a->events_of && a->slack_of && a->events;
}

static void find_meetings(struct alignment *a)
{
	const struct clock_calls *calls = &a->calls;

	for (size_t i = 0; i < calls->count; i++) {
		if (!i || clock_calls_compare_keys(&calls->list[i - 1].key, &calls->list[i].key))
			a->meetings[a->meeting_count++].from = i;
		a->meetings[a->meeting_count - 1].to = i + 1;
		a->meeting_of[i] = (uint32_t)(a->meeting_count - 1);
		a->first_of[calls->list[i].domain + 2]++;
	}
	for (uint32_t d = 0; d <= a->domains; d++)
		a->first_of[d + 1] += a->first_of[d];
	for (size_t i = 0; i < calls->count; i++)
		a->calls_of[a->first_of[calls->list[i].domain + 1]++] = i;
	for (size_t i = 0; i < calls->count; i++) {
		const struct meeting *meeting = &a->meetings[a->meeting_of[i]];

		a->shared_of[calls->list[i].domain] += meeting->to - meeting->from > 1;
	}
}

static void count_known(struct alignment *a, const struct meeting *meeting)
{
	for (size_t i = meeting->from; i < meeting->to; i++)
		a->known_of[a->calls.list[i].domain]++;
}

/* What the calls of an aligned domain tell about their collectives. The host with the smallest
   error counts alone: of the bounds of a thousand hosts the tightest would be one that is wrong. */
static void host_clocks_spread(struct alignment *a, uint32_t domain)
{
	const struct clock_fit *fit = &a->fits[domain];

	a->done[domain] = true;
	for (size_t i = a->first_of[domain]; i < a->first_of[domain + 1]; i++) {
		const struct clock_call *call = &a->calls.list[a->calls_of[i]];
		struct meeting *meeting = &a->meetings[a->meeting_of[a->calls_of[i]]];
		int64_t error = error_at(fit, call->end_ns);

		if (!meeting->known)
			count_known(a, meeting);
		if (meeting->known && error >= meeting->other_error_ns)
			continue;
		meeting->known = true;
		meeting->other_error_ns = error;
		meeting->other_end_ns = aligned(fit, call->end_ns);
		meeting->last_ns = aligned(fit, call->arrival_ns) - error;
		meeting->first_end_ns = meeting->other_end_ns + error;
	}
}

static int compare_events(const void *left, const void *right)
{
	const struct clock_fit_event *a = left, *b = right;

	return a->other_end_ns < b->other_end_ns ? -1 : a->other_end_ns > b->other_end_ns;
}

static size_t host_clocks_take_events(struct alignment *a, uint32_t domain)
{
	size_t count = 0;

	for (size_t i = a->first_of[domain]; i < a->first_of[domain + 1]; i++) {
		const struct clock_call *call = &a->calls.list[a->calls_of[i]];
		const struct meeting *meeting = &a->meetings[a->meeting_of[a->calls_of[i]]];

		if (meeting->known)
			a->events[count++] = (struct clock_fit_event){
				call->arrival_ns,      call->end_ns,
				meeting->last_ns,      meeting->first_end_ns,
				meeting->other_end_ns, meeting->other_error_ns,
				meeting->all_last_ns
			};
	}
	if (count)
		qsort(a->events, count, sizeof(*a->events), compare_events);
	return count;
}

/* The one of those left that has the most. */
static uint32_t next_domain(const struct alignment *a, const size_t *count_of)
{
	size_t best = 0;
	uint32_t found = UINT32_MAX;

	for (uint32_t d = 0; d < a->domains; d++)
		if (!a->done[d] && count_of[d] > best) {
			best = count_of[d];
			found = d;
		}
	return found;
}

/* ---- the result ----------------------------------------------------------------------------- */

static struct store_host_clock *host_clocks_add(struct recording *recording, uint32_t domain,
						enum store_align method)
{
	struct store_host_clock *clock;

	if (!grow_short((void **)&recording->host_clocks, recording->host_clock_count,
			sizeof(*recording->host_clocks)))
		return NULL;
	clock = &recording->host_clocks[recording->host_clock_count++];
	memset(clock, 0, sizeof(*clock));
	clock->domain = domain;
	clock->method = method;
	clock->error_ns = method == STORE_ALIGN_SAME ? 0 : -1;
	return clock;
}

static const char *host_of(const struct recording *recording, uint32_t domain)
{
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].domain == domain)
			return recording->processes[i].host;
	return "";
}

static int32_t host_clocks_rank_of(const struct recording *recording, uint32_t domain)
{
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].domain == domain && recording->processes[i].rank >= 0)
			return recording->processes[i].rank;
	return -1;
}

static void refuse(struct alignment *a, uint32_t domain)
{
	struct store_host_clock *clock = host_clocks_add(a->recording, domain, STORE_ALIGN_REFUSED);
	const size_t events = a->events_of[domain];

	if (!clock)
		return;
	clock->used = (uint32_t)events;
	snprintf(clock->reason, sizeof(clock->reason),
		 "%zu of %zu collectives contradict causality: a rank ended before another began",
		 a->fits[domain].contradictions, events);
	if (a->recording->arena)
		inside_say(a->recording,
			   "the clock of rank %d on host %s is not aligned: %s, with any offset of "
			   "its clock; "
			   "its calls may be paired wrongly",
			   (int)host_clocks_rank_of(a->recording, domain),
			   host_of(a->recording, domain), clock->reason);
}

/* Of an import: whether times differ by more than the fit can be wrong. */
static bool fit_differs(const struct clock_fit *fit)
{
	for (uint32_t i = 0; i < fit->count; i++)
		if (fabs(fit->pieces[i].offset_ns) > (double)fit->pieces[i].error_ns)
			return true;
	return false;
}

static bool domain_is_imported(const struct recording *recording, uint32_t domain)
{
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].domain == domain)
			return is_imported(&recording->runs[recording->processes[i].run]);
	return false;
}

static void add_pieces(struct alignment *a, uint32_t domain)
{
	struct clock_fit *fit = &a->fits[domain];
	bool applied = !domain_is_imported(a->recording, domain) || fit_differs(fit);

	for (uint32_t i = 0; i < fit->count; i++) {
		const struct clock_fit_piece *piece = &fit->pieces[i];
		struct store_host_clock *clock = host_clocks_add(a->recording, domain,
								 STORE_ALIGN_FITTED);

		if (!clock)
			return;
		clock->t0_ns = piece->t0_ns;
		clock->offset_ns = llrint(piece->offset_ns);
		clock->drift = piece->drift;
		clock->error_ns = piece->error_ns;
		clock->used = piece->used;
		clock->applied = applied;
	}
	if (!applied)
		fit->count = 0;
}

static void align_domain(struct alignment *a, uint32_t domain)
{
	a->events_of[domain] = host_clocks_take_events(a, domain);
	a->done[domain] = true;
	if (clock_fit(a->events, a->events_of[domain], a->slack_of[domain], &a->fits[domain]))
		host_clocks_spread(a, domain);
}

/* From one domain to all that share collectives with it, directly or through others. */
static void align_round(struct alignment *a)
{
	uint32_t domain = a->reference;

	if (domain == UINT32_MAX)
		return;
	host_clocks_spread(a, domain);
	while ((domain = next_domain(a, a->known_of)) != UINT32_MAX)
		align_domain(a, domain);
}

/* The last arrivals by the first round tell the second one how long the ends took. */
static void begin_second_round(struct alignment *a)
{
	for (size_t i = 0; i < a->meeting_count; i++) {
		struct meeting *meeting = &a->meetings[i];

		meeting->known = false;
		meeting->all_last_ns = CLOCK_FIT_UNKNOWN;
		for (size_t k = meeting->from; k < meeting->to; k++) {
			const struct clock_call *call = &a->calls.list[k];
			int64_t arrival = aligned(&a->fits[call->domain], call->arrival_ns);

			if (arrival > meeting->all_last_ns)
				meeting->all_last_ns = arrival;
		}
	}
	memset(a->fits, 0, a->domains * sizeof(*a->fits));
	memset(a->done, 0, a->domains * sizeof(*a->done));
	memset(a->known_of, 0, a->domains * sizeof(*a->known_of));
}

static void narrow(struct alignment *a)
{
	const struct clock_bounds bounds = { .calls = &a->calls,
					     .meeting_of = a->meeting_of,
					     .meeting_count = a->meeting_count,
					     .first_of = a->first_of,
					     .calls_of = a->calls_of,
					     .domains = a->domains,
					     .reference = a->reference,
					     .slack_ns = a->slack_of,
					     .fits = a->fits };

	if (a->reference != UINT32_MAX)
		clock_bounds_apply(&bounds);
}

static void add_result(struct alignment *a, uint32_t domain)
{
	if (!a->done[domain])
		host_clocks_add(a->recording, domain,
				a->domains == 1 ? STORE_ALIGN_SAME : STORE_ALIGN_NONE);
	else if (domain == a->reference)
		host_clocks_add(a->recording, domain, STORE_ALIGN_SAME);
	else if (a->fits[domain].count)
		add_pieces(a, domain);
	else
		refuse(a, domain);
}

static void align_all(struct alignment *a)
{
	for (size_t i = 0; i < a->meeting_count; i++)
		a->meetings[i].all_last_ns = CLOCK_FIT_UNKNOWN;
	for (uint32_t d = 0; d < a->domains; d++)
		a->slack_of[d] = domain_is_imported(a->recording, d) ? SLACK_IMPORTED_NS : SLACK_NS;
	a->reference = next_domain(a, a->shared_of);
	align_round(a);
	begin_second_round(a);
	align_round(a);
	narrow(a);
	for (uint32_t d = 0; d < a->domains; d++)
		add_result(a, d);
}

/* ---- moving times --------------------------------------------------------------------------- */

static uint64_t with_drift(uint64_t mult, double drift)
{
	return (uint64_t)llrint((double)mult * (1 - drift));
}

static uint64_t host_clocks_ticks_at(const struct store_clock *clock, int64_t ns)
{
	double away = (double)(ns - clock->base_ns) / store_clock_tick_ns(clock);

	if (away < 0)
		return -away > (double)clock->base_ticks ? 0 : clock->base_ticks - (uint64_t)-away;
	return clock->base_ticks + (uint64_t)away;
}

static void move_clock(struct store_clock *clock, const struct clock_fit *fit)
{
	const struct store_clock own = *clock;

	if (!clock_calls_is_time(own.base_ns) || !own.mult)
		return;
	clock->base_ns = own.base_ns - llrint(clock_fit_offset(&fit->pieces[0], own.base_ns));
	clock->mult = with_drift(own.mult, fit->pieces[0].drift);
	for (uint32_t i = 1; i < fit->count && i <= STORE_CLOCK_PIECES; i++) {
		const struct clock_fit_piece *piece = &fit->pieces[i];
		struct store_clock_piece *to = &clock->pieces[clock->piece_count++];

		to->base_ticks = host_clocks_ticks_at(&own, piece->from_ns);
		to->base_ns = piece->from_ns - llrint(clock_fit_offset(piece, piece->from_ns));
		to->mult = with_drift(own.mult, piece->drift);
	}
	clock->error_ns += (uint64_t)fit->pieces[0].error_ns;
}

static void move_time(int64_t *ns, const struct clock_fit *fit)
{
	if (clock_calls_is_time(*ns))
		*ns = aligned(fit, *ns);
}

static void move_times(struct alignment *a)
{
	struct recording *recording = a->recording;

	for (size_t i = 0; i < recording->process_count; i++) {
		struct store_process *process = &recording->processes[i];

		if (!a->fits[process->domain].count)
			continue;
		move_clock(&process->clock, &a->fits[process->domain]);
		move_time(&process->started_ns, &a->fits[process->domain]);
		move_time(&process->ended_ns, &a->fits[process->domain]);
	}
	for (size_t i = 1; i < recording->thread_count; i++) {
		struct store_thread *thread = &recording->threads[i];
		const struct clock_fit *fit =
			&a->fits[recording->processes[thread->process].domain];

		move_time(&thread->started_ns, fit);
		if (thread->ended_ns >= 0)
			move_time(&thread->ended_ns, fit);
	}
	for (size_t i = 0; i < recording->stream_count; i++) {
		struct store_stream *stream = &recording->streams[i];

		for (size_t k = 0; k < stream->open_count; k++)
			move_time(&stream->open_zones[k].start_ns,
				  &a->fits[recording->processes[stream->process].domain]);
	}
}

static void move_runs(struct alignment *a)
{
	struct recording *recording = a->recording;
	bool *moved = calloc(recording->run_count + 1, sizeof(*moved));

	for (size_t i = 0; moved && i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];
		struct store_run *run = &recording->runs[process->run];

		if (moved[process->run] || is_imported(run) || !a->fits[process->domain].count)
			continue;
		moved[process->run] = true;
		move_time(&run->started_ns, &a->fits[process->domain]);
	}
	free(moved);
}

static void align_and_free(struct alignment *a)
{
	if (!a->calls.no_memory && alignment_make_room(a)) {
		find_meetings(a);
		align_all(a);
		move_times(a);
		move_runs(a);
	}
	free(a->calls.list);
	free(a->meetings);
	free(a->meeting_of);
	free(a->first_of);
	free(a->calls_of);
	free(a->fits);
	free(a->shared_of);
	free(a->known_of);
	free(a->done);
	free(a->events_of);
	free(a->slack_of);
	free(a->events);
}

void host_clocks_align(struct recording *recording)
{
	struct alignment a = { .recording = recording };

	a.domains = find_domains(recording);
	if (!a.domains)
		return;
	if (a.domains > 1)
		clock_calls_read(&a.calls, recording);
	align_and_free(&a);
}

void host_clocks_align_calls(struct recording *recording, struct clock_calls *calls)
{
	struct alignment a = { .recording = recording, .calls = *calls };

	memset(calls, 0, sizeof(*calls));
	a.domains = find_domains(recording);
	for (size_t i = 0; i < a.calls.count; i++)
		if (a.calls.list[i].domain >= a.domains)
			a.domains = 0;
	if (a.domains)
		align_and_free(&a);
	else
		free(a.calls.list);
}
