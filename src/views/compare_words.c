/* What a comparison comes to, in sentences: the verdict, why, what to bear in mind. */
#include "views/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "views/format.h"

#define CAUSES_MOST 3
#define CAUSE_BYTES 60

void compare_say(struct compare *compare)
{
	const struct compare_stats *step = &compare->items[0].stats;
	const char *what = compare->runs[0].whole ? "a run" : "a step";
	char interval[64] = "";

	if (isfinite(step->low) && isfinite(step->high))
		snprintf(interval, sizeof(interval), " (95 %% interval %.3f to %.3f)", step->low,
			 step->high);
	if (isnan(step->p))
		snprintf(
			compare->sentence, sizeof(compare->sentence),
			"Nothing can be said of %s: values that follow each other are too much alike (a drift, "
			"or a busy machine). Record longer, or several runs of each.",
			what);
	else if (step->significant)
		snprintf(compare->sentence, sizeof(compare->sentence),
			 "B is %s: %s takes %.3f times as long%s.",
			 step->b > step->a ? "slower" : "faster", what, step->ratio, interval);
	else
		snprintf(
			compare->sentence, sizeof(compare->sentence),
			"No difference of %s can be told from noise: B takes %.3f times as long%s; a "
			"change of %s could have been seen.",
			what, step->ratio, interval, format_percent(step->could_see).text);
	compare->failed = compare->fail_above >= 0 && step->significant &&
			  step->low > 1 + compare->fail_above;
}

/* At most CAUSE_BYTES of a name, whole characters. */
static int cut(const char *name)
{
	size_t bytes = strlen(name);

	if (bytes <= CAUSE_BYTES)
		return (int)bytes;
	bytes = CAUSE_BYTES;
	while (bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80)
		bytes--;
	return (int)bytes;
}

/* "alpha 1.10 ×": the time at stake says the order; what is new or gone has no ratio. */
static void add_cause(struct buf *out, const struct compare_item *item)
{
	int bytes = cut(item->name);

	buf_print(out, "%.*s%s ", bytes, item->name, item->name[bytes] ? "…" : "");
	if (!(item->stats.a > 0))
		buf_text(out, "is new");
	else if (!(item->stats.b > 0))
		buf_text(out, "is gone");
	else
		buf_print(out, "%.2f ×", item->stats.ratio);
}

/* Those that are real, by what they cost; how many there are. */
static size_t add_causes(struct buf *out, const struct compare *compare)
{
	const struct compare_item **list = compare_ranked(compare);
	size_t real = 0;

	for (size_t i = 1; list && i < compare->item_count; i++) {
		if (!list[i]->stats.significant || real++ >= CAUSES_MOST)
			continue;
		buf_text(out, real > 1 ? ", " : "");
		add_cause(out, list[i]);
	}
	out->failed |= !list;
	free(list);
	return real;
}

void compare_because(const struct compare *compare, struct buf *out)
{
	size_t real = add_causes(out, compare);
	size_t left = real > CAUSES_MOST ? real - CAUSES_MOST : 0;

	if (left)
		buf_print(out, " and %zu more.", left);
	else if (real)
		buf_text(out, "; nothing else changed that can be told from noise.");
	else
		buf_text(out, "no region changed by itself so that it can be told from noise.");
	buf_print(out, " %zu tested, corrected (Holm), weighted by time.", compare->item_count);
}

void compare_notes(const struct compare *compare,
		   void (*note)(void *context, const char *text, bool loud), void *context)
{
	size_t count = compare->a_count + compare->b_count;
	struct buf line = { 0 };

	if (compare->why[0] && compare->sentence[0]) {
		buf_print(&line, "--anyway: %s.", compare->why);
		note(context, buf_get(&line), true);
	}
	buf_fini(&line);
	if (compare->items[0].stats.wander > 1)
		note(context,
		     "Step times wander slowly, as when a machine gets warm, so that intervals are wider; "
		     "record longer, or several runs of each.",
		     false);
	for (size_t i = 1; i < count; i++)
		if (strcmp(compare->runs[i].command, compare->runs[0].command)) {
			note(context, "the command lines differ", false);
			break;
		}
	if (count <= 3)
		note(context,
		     "One run of each: how much runs differ by themselves is not in these intervals; "
		     "kymo compare A1 A2 A3 -- B1 B2 B3 tells.",
		     false);
}

struct compare_figures compare_figures(const struct compare *compare)
{
	struct compare_figures out = { 0 };

	for (size_t i = 0; i < compare->a_count + compare->b_count; i++) {
		const struct compare_run *run = &compare->runs[i];
		bool b = i >= compare->a_count;
		double share = 1.0 / (double)(b ? compare->b_count : compare->a_count);

		out.peak_bytes[b] += share * (run->peak_bytes >= 0 ? run->peak_bytes : NAN);
		out.steps_per_s[b] += share * (run->whole ? NAN : run->steps_per_s);
	}
	return out;
}
