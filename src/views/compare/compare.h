/*
 * `kymo compare`: whether B is slower than A, where, and how certain that is. compare_stats.h has
 * the statistics; this part reads the recordings: steps, and the time of each region in each step.
 *
 *	gather (compare_gather.c) → check (compare_check.c) → judge (compare.c) →
 *	words (compare_words.c) → print (compare_text.c, compare_json.c, compare_html.c)
 */
#ifndef KYMO_VIEWS_COMPARE_COMPARE_H
#define KYMO_VIEWS_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/format.h"
#include "tables/tables.h"
#include "views/compare/compare_stats.h"
#include "views/stacks/name_table.h"
#include "views/stacks/call_tree.h"
#include "views/term/text.h"
#include "views/timeline/rank_set.h"

#define COMPARE_BINS \
	2048 /* of a run's steps; longer runs are averaged in groups of consecutive steps */
#define COMPARE_RUNS_MOST 64

enum compare_kind { COMPARE_STEP, COMPARE_REGION, COMPARE_MODULE };

/* Values of one item in one run, in the order of time: per step, or per call of a module. NULL:
   none. */
struct compare_series {
	double *values;
	size_t count, room;
};

struct compare_item {
	enum compare_kind kind;
	char *name;
	char source[16];
	struct compare_series *series; /* one for each run: those of A, then those of B */
	struct compare_stats stats;
	bool apart; /* the values of A and B hardly overlap */
};

struct compare_step {
	int64_t start_ns, end_ns;
};

struct compare_run {
	const char *target; /* as on the command line */
	char path[KYMO_PATH_BYTES], program[256], command[512], state[16], loop[64], settings[512];
	char sources[256]; /* "c python": those with a thousand zones or more */
	char some_sources[256]; /* with a hundred or more */
	double zones, zones_lost;
	double peak_bytes; /* negative: not recorded */
	double sample_ns; /* between stack samples; 0: none; -1: too few to tell */
	double steps_per_s;
	struct compare_step *steps; /* without warm-up */
	size_t step_count, step_room, warmup;
	size_t bin_count, bin_steps;
	size_t hint; /* the step that was looked up last */
	bool whole; /* no steps: the run is one value */
	bool imported; /* a trace of another tool */
	bool without_ranks; /* none of the chosen ranks is in it */
	size_t ranks; /* that recorded; 1 outside a job */
};

struct compare {
	struct compare_run *runs;
	size_t a_count, b_count;
	struct name_table frames; /* of zones, with their places */
	/* of items: a region is its name and source, wherever it is in the code */
	struct name_table names;
	struct compare_item *items; /* [0] is the step */
	size_t item_count, item_room;
	/* self time per step: values[0] of A, [1] of B; frames are numbers of names */
	struct call_tree flame;
	bool total; /* total time of a region instead of self time */
	struct rank_set ranks; /* only these are compared */
	char why[1024]; /* why they are not comparable; "": they are */
	char sentence[512];
	double fail_above; /* 0.05; negative: not set */
	bool failed;
};

struct compare_options {
	const char *const *a, *const *b; /* targets */
	size_t a_count, b_count;
	bool anyway, total;
	struct rank_set ranks;
	double fail_above;
};

/* Gathers and judges. Returns 0 also if they are not comparable; then .why is set. */
int compare_make(const struct compare_options *options, struct compare *out,
		 void (*opened)(struct tables *tables), struct kymo_error *err);
void compare_fini(struct compare *compare);

/* all: include differences that are not significant. */
void compare_print(const struct compare *compare, bool all, const struct text_style *style,
		   FILE *out);
#define COMPARE_JSON_MARK "{\"comparable\":"
/* With the differential flame graph; see kymo-compare(1). */
void compare_json(const struct compare *compare, struct buf *out);
/* The same document in a page that opens offline. */
int compare_html(const struct compare *compare, FILE *out, struct kymo_error *err);

/* Inside: */
struct compare_figures {
	double peak_bytes[2],
		steps_per_s[2]; /* of A and B, the mean of their runs; NAN: not recorded */
};

int compare_gather(struct compare *compare, size_t run, struct tables *tables,
		   struct kymo_error *err);
/* Appends the file to the names of Python functions that exist in several files. After all runs. */
int compare_tell_apart(struct compare *compare);
/* Fills .why. */
void compare_check(struct compare *compare);
/* Fills .sentence and .failed. */
void compare_say(struct compare *compare);
/* The differences behind the verdict. */
void compare_because(const struct compare *compare, struct buf *out);
void compare_notes(const struct compare *compare,
		   void (*note)(void *context, const char *text, bool loud), void *context);
struct compare_figures compare_figures(const struct compare *compare);
/* The step, then items by the time they change; the caller frees the list. */
const struct compare_item **compare_ranked(const struct compare *compare);
/* Whether a test confirms it, or the values of A and B hardly overlap. */
bool compare_differs(const struct compare_item *item);
bool compare_are_apart(const struct compare *compare, const struct compare_item *item);
/* A row of the table, and its heading: names of columns. */
struct compare_columns {
	const char *name, *a, *b, *change;
};
void compare_print_heading(const struct compare_columns *columns, const struct text_style *style,
			   FILE *out);
void compare_print_item(const struct compare_item *item, const struct text_style *style, FILE *out);
/* A row as a JSON object. */
void compare_json_row(struct buf *out, const struct compare_item *item, const char *kind);
/* By how much this item changes the time of a step, in ns. */
double compare_at_stake(const struct compare_item *item);

#endif
