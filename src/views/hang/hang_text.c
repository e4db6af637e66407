/* A hang on one screen of 80 columns. */
#include "views/hang/hang.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/term/format.h"
#include "views/verdicts/where.h"

#define NAMED_MOST 4 /* ranks that are described one by one */
#define GROUPS_MOST 3 /* of ranks that wait together */

static void hang_text_line(const char *text, int indent, const struct text_style *style, FILE *out)
{
	text_paragraph(out, text, indent, NULL, false, style);
}

static void hang_text_since(struct buf *line, double ns, const struct text_style *style)
{
	if (!isnan(ns) && ns > 0)
		buf_print(line, " for %s", format_duration(ns, style->utf8).text);
}

/* "wait_for_file  train.py:32, sleeping for 34.4 s". */
static void print_place(const struct hang_rank *rank, bool with_time,
			const struct text_style *style, FILE *out)
{
	struct verdict place = { .where_share = -1 };
	struct buf line = { 0 };

	where_set(&place, rank->place, -1);
	where_add_line(&line, &place);
	if (rank->doing[0])
		buf_print(&line, "%s%s", line.used ? ", " : "", rank->doing);
	if (line.used && with_time)
		hang_text_since(&line, rank->place_ns, style);
	else if (!line.used && rank->reason[0])
		buf_text(&line, rank->reason);
	else if (!line.used && strcmp(rank->state, "wrote nothing") != 0)
		buf_text(&line, "no stack of this rank is recorded");
	if (line.used)
		hang_text_line(buf_get(&line), 6, style, out);
	buf_fini(&line);
}

static void print_calls(const struct hang *hang, const struct hang_rank *rank,
			const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };

	if (rank->role != HANG_ABSENT && rank->role != HANG_UNSEEN && rank->in.op[0]) {
		buf_print(&line, "%s in ", hang->live ? "is" : "was");
		hang_add_call(&line, hang, &rank->in);
		hang_text_since(&line, rank->in.ns, style);
		if (rank->wanted.op[0]) {
			buf_text(&line, ", not in ");
			hang_add_call(&line, hang, &rank->wanted);
		}
		hang_text_line(buf_get(&line), 6, style, out);
		buf_reset(&line);
	}
	if (rank->last.op[0]) {
		buf_text(&line, "last left ");
		hang_add_call(&line, hang, &rank->last);
		buf_print(&line, ", %s %s", format_duration(rank->last.ns, style->utf8).text,
			  hang->live ? "ago" : "before the end");
		if (rank->step > 0)
			buf_print(&line, ", in step %.0f", rank->step);
		hang_text_line(buf_get(&line), 6, style, out);
	}
	buf_fini(&line);
}

static void print_age(const struct hang *hang, const struct hang_rank *rank,
		      const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };

	if (!hang->live || strcmp(rank->state, "unknown") != 0)
		return;
	buf_print(&line, "its last data is %s old; whether it still runs is not known here",
		  format_duration(rank->age_ns > 0 ? rank->age_ns : 0, style->utf8).text);
	hang_text_line(buf_get(&line), 6, style, out);
	buf_fini(&line);
}

static void print_rank(const struct hang *hang, size_t at, const struct text_style *style,
		       FILE *out)
{
	const struct hang_rank *rank = &hang->ranks[at];
	struct buf line = { 0 };

	buf_print(&line, "rank %d  ", rank->rank);
	if (rank->host[0] && hang->hosts > 1)
		buf_print(&line, "host %s, ", rank->host);
	if (rank->pid)
		buf_print(&line, "pid %d, ", rank->pid);
	buf_text(&line, rank->state);
	if (rank->attempt > 0)
		buf_print(&line, ", restart %.0f", rank->attempt);
	text_paragraph(out, buf_get(&line), 2, NULL, true, style);
	print_place(rank, true, style, out);
	print_calls(hang, rank, style, out);
	print_age(hang, rank, style, out);
	buf_fini(&line);
}

/* ---- ranks that wait ------------------------------------------------------------------------- */

static bool hang_text_same(const struct hang_rank *one, const struct hang_rank *other)
{
	return one->role == other->role && !strcmp(one->in.op, other->in.op) &&
	       !strcmp(one->in.group, other->in.group) &&
	       (one->in.seq == other->in.seq || (isnan(one->in.seq) && isnan(other->in.seq)));
}

/* Ranks of one group are not always neighbours: a list of its own has them in order. */
static void print_group(const struct hang *hang, size_t first, bool *told,
			const struct text_style *style, FILE *out)
{
	const struct hang_rank *one = &hang->ranks[first];
	struct hang same = { .live = hang->live, .hosts = hang->hosts };
	struct buf line = { 0 };

	for (size_t i = first; i < hang->count; i++)
		if (!told[i] && hang_text_same(one, &hang->ranks[i]) &&
		    grow((void **)&same.ranks, &same.room, same.count, sizeof(*same.ranks))) {
			same.ranks[same.count++] = hang->ranks[i];
			told[i] = true;
		}
	if (same.count)
		hang_add_ranks(&line, &same, 0, same.count);
	if (one->in.op[0]) {
		buf_print(&line, "  %s in ",
			  !hang->live	    ? "waited"
			  : same.count == 1 ? "waits"
					    : "wait");
		hang_add_call(&line, hang, &one->in);
		hang_text_since(&line, one->in.ns, style);
	} else {
		buf_print(&line, "  %s", one->state);
	}
	text_paragraph(out, buf_get(&line), 2, NULL, true, style);
	if (strcmp(one->state, "ended") != 0)
		print_place(one, false, style, out);
	buf_fini(&line);
	hang_fini(&same);
}

static void print_waiting(const struct hang *hang, size_t from, const struct text_style *style,
			  FILE *out)
{
	bool *told = calloc(hang->count + 1, sizeof(*told));
	size_t groups = 0, left = 0;

	for (size_t i = from; told && i < hang->count; i++) {
		if (told[i])
			continue;
		if (groups++ < GROUPS_MOST)
			print_group(hang, i, told, style, out);
		else
			left++;
	}
	free(told);
	if (left)
		fprintf(out, "  %zu more ranks: --json lists all\n", left);
}

/* How far behind the data of other hosts is. */
static void print_ages(const struct hang *hang, const struct text_style *style, FILE *out)
{
	struct buf line = { 0 };
	double most = 0;
	size_t unknown = 0;

	for (size_t i = 0; i < hang->count; i++)
		if (!strcmp(hang->ranks[i].state, "unknown")) {
			unknown++;
			most = fmax(most, hang->ranks[i].age_ns);
		}
	if (!unknown)
		return;
	buf_print(&line,
		  "%zu rank%s of other hosts: known from the shared directory, at most %s old.",
		  unknown, unknown == 1 ? "" : "s", format_duration(most, style->utf8).text);
	fputc('\n', out);
	hang_text_line(buf_get(&line), 2, style, out);
	buf_fini(&line);
}

void hang_print(const struct hang *hang, const struct text_style *style, FILE *out)
{
	size_t named = 0;

	text_paragraph(out, hang->sentence, 0, NULL, true, style);
	fputc('\n', out);
	while (named < hang->count && named < NAMED_MOST && hang->ranks[named].role <= HANG_UNSEEN)
		print_rank(hang, named++, style, out);
	print_waiting(hang, named, style, out);
	print_ages(hang, style, out);
}
