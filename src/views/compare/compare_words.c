/* A comparison in sentences: the verdict, the reasons, the notes. */
#include "views/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "views/term/format.h"

#define CAUSES_MOST 3
#define CAUSE_BYTES 60

/* The interval is that of this figure alone. Significance is corrected for all figures that are
   compared at once. */
static void add_interval(struct buf *out, const struct compare_stats *step)
{
	bool alone = !step->significant && (step->low > 1 || step->high < 1);

	if (isfinite(step->low) && isfinite(step->high))
		buf_print(out, " (95 %% interval %.3f to %.3f%s)", step->low, step->high,
			  alone ? "; not significant among so many tests" : "");
	else if (step->significant && isfinite(step->low))
		buf_print(out, " (95 %% interval from %.3f)", step->low);
}

static void say_nothing_of(struct buf *out, const struct compare *compare, const char *what)
{
	buf_print(out, "No conclusion on the time of %s: ", what);
	if (compare->runs[0].whole && compare->a_count + compare->b_count == 2)
		buf_text(out, "each side has one run, which does not show how much runs vary. "
			      "Record several: kymo compare A1 A2 A3 -- B1 B2 B3.");
	else
		buf_text(out,
			 "there are few values, and successive ones depend on each other (drift, "
			 "or a busy machine). Record longer, or several runs of each.");
}

static void say_apart(struct buf *out, const struct compare_stats *step, const char *what)
{
	buf_print(out,
		  "B is %s: %s takes %.3f times as long, and the times of A and B hardly overlap. "
		  "Successive values depend on each other, so no test confirms it; record longer, "
		  "or several runs of each.",
		  step->b > step->a ? "slower" : "faster", what, step->b / step->a);
}

/* A test that would have missed twice the time is no evidence of equality. */
static bool tells_nothing(const struct compare_stats *step)
{
	return isnan(step->p) || (!step->significant && step->could_see > 1);
}

void compare_say(struct compare *compare)
{
	const struct compare_stats *step = &compare->items[0].stats;
	const char *what = compare->runs[0].whole ? "a run" : "a step";
	struct buf out = { 0 };

	if (!step->significant && compare->items[0].apart) {
		say_apart(&out, step, what);
	} else if (tells_nothing(step)) {
		say_nothing_of(&out, compare, what);
	} else if (step->significant) {
		buf_print(&out, "B is %s: %s takes %.3f times as long",
			  step->b > step->a ? "slower" : "faster", what, step->ratio);
		add_interval(&out, step);
		buf_text(&out, ".");
	} else {
		buf_print(&out, "No significant difference: in B %s takes %.3f times as long", what,
			  step->ratio);
		add_interval(&out, step);
		buf_print(&out, "; a change of %s would have been detected.",
			  format_percent(step->could_see).text);
	}
	snprintf(compare->sentence, sizeof(compare->sentence), "%s", buf_get(&out));
	buf_fini(&out);
	compare->failed = compare->fail_above >= 0 && step->significant &&
			  step->low > 1 + compare->fail_above;
}

/* At most CAUSE_BYTES of a name, whole characters. */
static int compare_words_cut(const char *name)
{
	size_t bytes = strlen(name);

	if (bytes <= CAUSE_BYTES)
		return (int)bytes;
	bytes = CAUSE_BYTES;
	while (bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80)
		bytes--;
	return (int)bytes;
}

/* "alpha 1.10 ×"; a region that is new or gone has no ratio. */
static void add_cause(struct buf *out, const struct compare_item *item)
{
	int bytes = compare_words_cut(item->name);

	buf_print(out, "%.*s%s ", bytes, item->name, item->name[bytes] ? "…" : "");
	if (!(item->stats.a > 0))
		buf_text(out, "is new");
	else if (!(item->stats.b > 0))
		buf_text(out, "is gone");
	else
		buf_print(out, "%.2f ×", item->stats.ratio);
}

/* The differences that count, the largest first. Returns how many there are. */
static size_t add_causes(struct buf *out, const struct compare *compare)
{
	const struct compare_item **list = compare_ranked(compare);
	size_t real = 0;

	for (size_t i = 1; list && i < compare->item_count; i++) {
		if (!compare_differs(list[i]) || real++ >= CAUSES_MOST)
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
		buf_text(out, "; no other difference is significant.");
	else
		buf_text(out, "no difference of a region is significant.");
	buf_print(out, " %zu tests, Holm-corrected, weighted by time.", compare->item_count);
}

/* Regions of jobs are means of their ranks, so that jobs of different sizes can be compared. */
static void compare_words_ranks(const struct compare *compare,
				void (*note)(void *context, const char *text, bool loud),
				void *context)
{
	size_t a = compare->runs[0].ranks, b = compare->runs[compare->a_count].ranks;
	char text[256];

	if (a <= 1 && b <= 1)
		return;
	if (a != b)
		snprintf(text, sizeof(text),
			 "A has %zu rank%s, B has %zu: steps are those of one rank of each, times "
			 "of regions the mean of all ranks, memory the sum; --by rank compares the "
			 "ranks that both have.",
			 a, a == 1 ? "" : "s", b);
	else
		snprintf(text, sizeof(text),
			 "Steps are those of one rank, times of regions the mean of %zu ranks; "
			 "--by rank compares each.",
			 a);
	note(context, text, a != b);
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
	if (compare->ranks.count)
		note(context, "Of the chosen ranks; steps are those of the rank with the most.",
		     false);
	if (compare->items[0].stats.wander > 1)
		note(context,
		     "Step times drift slowly, as on a machine that heats up, so the intervals are "
		     "wider; record longer, or several runs of each.",
		     false);
	compare_words_ranks(compare, note, context);
	for (size_t i = 1; i < count; i++)
		if (strcmp(compare->runs[i].command, compare->runs[0].command)) {
			note(context, "The command lines differ.", false);
			break;
		}
	if (count <= 3)
		note(context,
		     "One run of each: the intervals do not include variation between runs; use "
		     "kymo compare A1 A2 A3 -- B1 B2 B3.",
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
