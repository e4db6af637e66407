/* What the period of a process depends on: sample_pace.h decides. */
#include <stdio.h>
#include <time.h>

#include "collect/sample/sample_pace.h"
#include "collect/sample/sampler_inside.h"
#include "record/record.h"

#define CHILD_USES_NS 30000000ull /* the start of a Python takes 10 to 20 ms */
#define CHILD_YOUNG_NS 300000000ull /* one that waits is sampled, too */
#define BURST_EVERY_NS 1000000000ull /* at least, while the memory grows */
#define BURST_YOUNG_NS 3000000000ull /* of age: a short run has few seconds */
#define BURST_YOUNG_EVERY_NS 100000000ull
#define BURST_FOR_NS 50000000ull
#define BURST_BYTES (1u << 20) /* of growth since the last burst */

static void tell_pace(const char *text)
{
	kymo__config_row("sampling", "", text, "kymo");
}

/* Told when a pace is twice as slow as the one told before, so that there are few rows. */
static void tell_slower(struct sampler_inside *inside, const struct watched *one, uint64_t least_ns)
{
	char text[128];

	if (least_ns < 2 * SAMPLE_PACE_NS || least_ns < 2 * inside->told_least_ns)
		return;
	inside->told_least_ns = least_ns;
	snprintf(text, sizeof(text),
		 "every %.0f ms at most, for 0.5 %% of a core: "
		 "a sample of %zu threads takes %.0f us",
		 (double)least_ns / 1e6, one->stack.thread_count, (double)one->cost_ns / 1e3);
	tell_pace(text);
}

/* Of a sample of each process; those that are not read, as they are no Python, cost nothing. */
static uint64_t cost_of_all(const struct sampler_inside *inside)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < inside->watched_count; i++)
		if (inside->watched[i]->open)
			sum += inside->watched[i]->cost_ns;
	return sum;
}

/* The clock that clock_getcpuclockid() gives, without its check of the process. */
static uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock = (clockid_t)((~(unsigned int)pid << 3) | 2u);
	struct timespec used;

	if (clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

bool sampler_is_too_young(const struct watched *one, uint64_t now_ns)
{
	return one->is_child && !one->taken && now_ns - one->found_ns < CHILD_YOUNG_NS &&
	       process_cpu_ns(one->pid) < CHILD_USES_NS;
}

void sampler_learn_idle(struct watched *one, uint64_t now_ns)
{
	uint64_t past_ns = now_ns - one->used_at_ns, used_ns, spent_ns;

	if (past_ns < SAMPLER_LOOK_NS)
		return;
	used_ns = process_cpu_ns(one->pid);
	spent_ns = used_ns > one->used_ns ? used_ns - one->used_ns : 0;
	if (one->used_at_ns && used_ns)
		one->idle_permille = spent_ns < past_ns
					     ? (uint32_t)(1000 - spent_ns * 1000 / past_ns)
					     : 0;
	one->used_ns = used_ns;
	one->used_at_ns = now_ns;
}

/* A function that allocates for a millisecond now and then is met by few of the samples that are
   10 ms apart: while the memory grows, some of each second is sampled every millisecond. */
static bool is_burst(struct watched *one, uint64_t now_ns)
{
	uint64_t every_ns = now_ns - one->first_ns < BURST_YOUNG_NS ? BURST_YOUNG_EVERY_NS
								    : BURST_EVERY_NS;

	if (now_ns < one->burst_until_ns)
		return true;
	if (now_ns < one->burst_ns)
		return false;
	/* The pauses differ, so that bursts do not meet a loop always at the same point. */
	one->burst_ns = now_ns + every_ns + now_ns % every_ns / 4;
	if (one->memory.rss_bytes > one->burst_bytes + BURST_BYTES && one->burst_bytes)
		one->burst_until_ns = now_ns + BURST_FOR_NS;
	one->burst_bytes = one->memory.rss_bytes;
	return now_ns < one->burst_until_ns;
}

void sampler_choose_period(struct sampler_inside *inside, struct watched *one, uint64_t now_ns)
{
	struct sample_pace pace = { .fixed_ns = inside->period_ns,
				    .age_ns = one->first_ns && now_ns > one->first_ns
						      ? now_ns - one->first_ns
						      : 0,
				    .unchanged = one->unchanged,
				    .burst = is_burst(one, now_ns),
				    .cost_ns = inside->adaptive ? cost_of_all(inside) : 0,
				    .idle_permille = one->idle_permille,
				    .run_ns = now_ns - inside->began_ns,
				    .spent_ns = inside->first_cost_ns };

	one->period_ns = sample_pace_next(&pace);
	if (!inside->adaptive || !one->first_ns)
		return;
	if (!inside->told_adaptive)
		tell_pace("adaptive");
	inside->told_adaptive = true;
	pace.idle_permille = 0; /* told only if samples are costly */
	if (pace.age_ns >= SAMPLE_PACE_FIRST_FOR_NS)
		tell_slower(inside, one, sample_pace_least(&pace));
}
