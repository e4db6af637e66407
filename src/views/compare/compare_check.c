/* The reasons why recordings are not comparable: rows of one table. The first that holds is
   reported. */
#include "views/compare/compare.h"

#include <stdio.h>
#include <string.h>

#include "views/term/format.h"

#define DENSE_LEAST 1000 /* zones per step; below, their cost does not matter */
#define DENSE_RATIO 10
#define LOSS_MOST 0.01 /* share of the zones */

static size_t compare_check_run_count(const struct compare *compare)
{
	return compare->a_count + compare->b_count;
}

static char compare_check_side_of(const struct compare *compare, size_t run)
{
	return run < compare->a_count ? 'A' : 'B';
}

/* The first run whose text differs from that of run 0; 0: none. */
static size_t differs(const struct compare *compare, const char *first, size_t offset)
{
	for (size_t i = 1; i < compare_check_run_count(compare); i++)
		if (strcmp(first, (const char *)&compare->runs[i] + offset))
			return i;
	return 0;
}

#define ALIKE_SAMPLED "Record both with kymo run and the same KYMO_SAMPLE_RATE (seconds; 0: none)"
#define ALIKE_TRACED "Record both with the same options of kymo run (--python, --torch, --device)"

#define DIFFERS(compare, member) \
	differs(compare, (compare)->runs[0].member, offsetof(struct compare_run, member))

static bool no_such_rank(const struct compare *compare, char *why, size_t bytes)
{
	for (size_t i = 0; i < compare_check_run_count(compare); i++)
		if (compare->runs[i].without_ranks) {
			snprintf(why, bytes, "%c (%s) has none of the chosen ranks",
				 compare_check_side_of(compare, i), compare->runs[i].target);
			return true;
		}
	return false;
}

static bool other_program(const struct compare *compare, char *why, size_t bytes)
{
	size_t i = DIFFERS(compare, program);

	if (i)
		snprintf(why, bytes,
			 "A is a recording of %s, %c (%s) of %s: compare runs of one program",
			 compare->runs[0].program, compare_check_side_of(compare, i),
			 compare->runs[i].target, compare->runs[i].program);
	return i;
}

static bool other_loop(const struct compare *compare, char *why, size_t bytes)
{
	size_t i = DIFFERS(compare, loop);

	if (i)
		snprintf(why, bytes,
			 "A has steps of %s, %c (%s) of %s: record both in the same way",
			 compare->runs[0].loop[0] ? compare->runs[0].loop : "no loop",
			 compare_check_side_of(compare, i), compare->runs[i].target,
			 compare->runs[i].loop[0] ? compare->runs[i].loop : "no loop");
	return i;
}

static const char *sampling_of(const struct compare_run *run, struct format_text *text)
{
	if (run->sample_ns <= 0)
		return "not sampled";
	*text = format_duration(run->sample_ns, true);
	return text->text;
}

/* By the samples, since the rate may change while a program runs. Rates within a factor of 4 count
   as equal: on a busy machine samples come late. */
static bool other_sampling(const struct compare *compare, char *why, size_t bytes)
{
	const struct compare_run *first = &compare->runs[0];
	struct format_text texts[2];

	for (size_t i = 1; i < compare_check_run_count(compare); i++) {
		const struct compare_run *run = &compare->runs[i];
		double least = run->sample_ns < first->sample_ns ? run->sample_ns
								 : first->sample_ns;
		double most = run->sample_ns > first->sample_ns ? run->sample_ns : first->sample_ns;

		if (least < 0 || most <= 4 * least)
			continue;
		snprintf(why, bytes, "A was %s%s, %c was %s%s. " ALIKE_SAMPLED,
			 first->sample_ns > 0 ? "sampled every " : "",
			 sampling_of(first, &texts[0]), compare_check_side_of(compare, i),
			 run->sample_ns > 0 ? "sampled every " : "", sampling_of(run, &texts[1]));
		return true;
	}
	return false;
}

static bool other_settings(const struct compare *compare, char *why, size_t bytes)
{
	size_t i = DIFFERS(compare, settings);

	if (i)
		snprintf(why, bytes, "A was recorded with %s, %c with %s. " ALIKE_SAMPLED,
			 compare->runs[0].settings[0] ? compare->runs[0].settings
						      : "default settings",
			 compare_check_side_of(compare, i),
			 compare->runs[i].settings[0] ? compare->runs[i].settings
						      : "default settings");
	return i;
}

/* Whether every word of `some` is in `list`. */
static bool has_all_words(const char *list, const char *some)
{
	char word[64], padded[sizeof(((struct compare_run *)0)->sources) + 2];

	snprintf(padded, sizeof(padded), " %s ", list);
	for (size_t bytes; *some; some += bytes + (some[bytes] == ' ')) {
		bytes = strcspn(some, " ");
		snprintf(word, sizeof(word), " %.*s ", (int)bytes, some);
		if (!strstr(padded, word))
			return false;
	}
	return true;
}

/* What one has many zones of, the other has some of: 990 and 1,010 zones are no difference. */
static bool are_traced_alike(const struct compare_run *a, const struct compare_run *b)
{
	return has_all_words(b->some_sources, a->sources) &&
	       has_all_words(a->some_sources, b->sources);
}

/* Recording costs time: zones that only one side records make that side slower. */
static bool other_sources(const struct compare *compare, char *why, size_t bytes)
{
	size_t i = 1, count = compare_check_run_count(compare);

	while (i < count && are_traced_alike(&compare->runs[0], &compare->runs[i]))
		i++;
	if (i < count)
		snprintf(why, bytes,
			 "A has many zones from %s, %c (%s) from %s, and recording takes "
			 "time. " ALIKE_TRACED,
			 compare->runs[0].sources[0] ? compare->runs[0].sources : "no source",
			 compare_check_side_of(compare, i), compare->runs[i].target,
			 compare->runs[i].sources[0] ? compare->runs[i].sources : "no source");
	return i < count;
}

static double zones_a_step(const struct compare_run *run)
{
	size_t steps = run->step_count + run->warmup;

	return steps && run->zones > 0 ? run->zones / (double)steps : 0;
}

/* For example, Python calls recorded on one side only; the program's own regions have the same
   source. */
static bool other_density(const struct compare *compare, char *why, size_t bytes)
{
	double first = zones_a_step(&compare->runs[0]);

	for (size_t i = 1; first > 0 && i < compare_check_run_count(compare); i++) {
		double here = zones_a_step(&compare->runs[i]);
		double least = here < first ? here : first, most = here < first ? first : here;

		if (here <= 0 || most < DENSE_LEAST || most < DENSE_RATIO * least)
			continue;
		snprintf(why, bytes,
			 "A has %s zones per step, %c (%s) has %s, and recording takes "
			 "time. " ALIKE_TRACED,
			 format_count((uint64_t)first).text, compare_check_side_of(compare, i),
			 compare->runs[i].target, format_count((uint64_t)here).text);
		return true;
	}
	return false;
}

static bool losses(const struct compare *compare, char *why, size_t bytes)
{
	for (size_t i = 0; i < compare_check_run_count(compare); i++) {
		const struct compare_run *run = &compare->runs[i];
		double share = run->zones > 0 ? run->zones_lost / run->zones : 0;

		if (share <= LOSS_MOST)
			continue;
		snprintf(why, bytes,
			 "%c (%s) lost %s of its zones, so the times of regions are incomplete; "
			 "record with kymo run, which keeps all zones",
			 compare_check_side_of(compare, i), run->target,
			 format_percent(share).text);
		return true;
	}
	return false;
}

/* With several runs, each run is one value, and one step is enough. */
static bool too_few(const struct compare *compare, char *why, size_t bytes)
{
	bool many = compare_check_run_count(compare) > 3;

	for (size_t i = 0; i < compare_check_run_count(compare); i++) {
		const struct compare_run *run = &compare->runs[i];

		if (run->imported) /* has few steps, and many calls of each kernel */
			continue;
		if (run->whole && !many)
			snprintf(why, bytes,
				 "%c (%s) has no steps, and one run is only one value: mark steps "
				 "with kymo.step() or kymo_step(), or compare several runs of each",
				 compare_check_side_of(compare, i), run->target);
		else if (!many && run->step_count < COMPARE_STATS_STEPS_LEAST)
			snprintf(why, bytes,
				 "%c (%s) has %zu steps after %zu warm-up steps; at least %d are "
				 "needed: record longer, or compare several runs of each",
				 compare_check_side_of(compare, i), run->target, run->step_count,
				 run->warmup, COMPARE_STATS_STEPS_LEAST);
		else if (run->bin_count)
			continue;
		return true;
	}
	return false;
}

void compare_check(struct compare *compare)
{
	static bool (*const checks[])(const struct compare *compare, char *why, size_t bytes) = {
		no_such_rank,  other_program, other_loop, other_sampling, other_settings,
		other_sources, other_density, losses,	  too_few,
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i](compare, compare->why, sizeof(compare->why)))
			return;
}
