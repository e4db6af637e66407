#include "store/clockmap.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static int64_t saturated_sum(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

int64_t store_clock_span_ns(const struct store_clock *clock, uint64_t ticks)
{
	return clock_span_ns(clock->mult, ticks);
}

int64_t store_clock_ns(const struct store_clock *clock, uint64_t ticks)
{
	uint64_t base_ticks = clock->base_ticks, mult = clock->mult;
	int64_t base_ns = clock->base_ns;

	for (uint32_t i = 0; i < clock->piece_count && ticks >= clock->pieces[i].base_ticks; i++) {
		base_ticks = clock->pieces[i].base_ticks;
		base_ns = clock->pieces[i].base_ns;
		mult = clock->pieces[i].mult;
	}
	if (ticks >= base_ticks)
		return saturated_sum(base_ns, clock_span_ns(mult, ticks - base_ticks));
	return saturated_sum(base_ns, -clock_span_ns(mult, base_ticks - ticks));
}

bool clockmap_pairs(const struct kymo_control *control, struct kymo_clock_pair *first,
		    struct kymo_clock_pair *last, bool *nonsense)
{
	return clock_newest_pairs(control->pairs, control->pair_count, first, last, nonsense);
}

static void prefer(struct clock_rate *best, const struct kymo_clock_pair *first,
		   const struct kymo_clock_pair *last)
{
	struct clock_rate rate;

	if (clock_is_filled(first) && clock_is_filled(last) &&
	    clock_rate_between(first, last, &rate) && rate.baseline_ns > best->baseline_ns)
		*best = rate;
}

/* The most exact rate of any pair in the run; all its processes share the counter. */
static struct clock_rate rate_of_run(const struct recording *recording,
				     const struct kymo_clock_pair *now)
{
	struct clock_rate best = { 0 };
	struct kymo_clock_pair first, last;
	bool nonsense;

	if (recording->run.clock_kind != KYMO_CLOCK_MONOTONIC) {
		prefer(&best, &recording->run.epoch, &recording->run.end);
		if (now)
			prefer(&best, &recording->run.epoch, now);
	}
	for (size_t i = 0; i < recording->process_count; i++) {
		if (recording->processes[i].control.clock_kind == KYMO_CLOCK_MONOTONIC)
			continue;
		if (clockmap_pairs(&recording->processes[i].control, &first, &last, &nonsense))
			prefer(&best, &first, &last);
		if (now)
			prefer(&best, &first, now);
	}
	return best;
}

static void say_about(const struct store_process *process, const char *what,
		      void (*say)(void *context, const char *sentence), void *context)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "process %d: its clock pairs %s", (int)process->pid,
		 what);
	say(context, sentence);
}

static void set_clock(struct recording *recording, struct store_process *process,
		      const struct clock_rate *common,
		      void (*say)(void *context, const char *sentence), void *context)
{
	struct clock_rate rate = *common;
	struct kymo_clock_pair first, last;
	bool nonsense;
	bool own = clockmap_pairs(&process->control, &first, &last, &nonsense);
	struct clock_rate mine = { 0 };

	if (own)
		prefer(&mine, &first, &last);
	if (mine.baseline_ns >= CLOCK_ENOUGH_NS || mine.baseline_ns > rate.baseline_ns)
		rate = mine;
	if (nonsense && !own)
		say_about(process, "are invalid; the run's rate is used", say, context);
	if (!clock_is_filled(&first))
		first = recording->run.epoch;
	if (!rate.mult) {
		rate.mult = UINT64_C(1) << 32;
		say_about(process,
			  "give no clock rate, and neither do others; its times are in ticks", say,
			  context);
	}
	process->clock.kind = process->control.clock_kind;
	process->clock.base_ticks = first.ticks;
	process->clock.base_ns = (int64_t)(first.monotonic_ns - recording->run.epoch.monotonic_ns);
	process->clock.mult = rate.mult;
	process->clock.error_ns = first.error_ns + rate.error_ns;
}

static void set_monotonic(const struct recording *recording, struct store_process *process)
{
	process->clock.kind = KYMO_CLOCK_MONOTONIC;
	process->clock.base_ticks = recording->run.epoch.monotonic_ns;
	process->clock.base_ns = 0;
	process->clock.mult = UINT64_C(1) << 32;
	process->clock.error_ns = recording->run.epoch.error_ns;
}

void clockmap_all(struct recording *recording, const struct kymo_clock_pair *now,
		  void (*say)(void *context, const char *sentence), void *context)
{
	struct clock_rate common = rate_of_run(recording, now);

	for (size_t i = 0; i < recording->process_count; i++) {
		struct store_process *process = &recording->processes[i];

		if (process->control.clock_kind == KYMO_CLOCK_MONOTONIC)
			set_monotonic(recording, process);
		else
			set_clock(recording, process, &common, say, context);
	}
}
