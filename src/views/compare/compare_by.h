/*
 * `kymo compare --by rank|attempt`: parts of one job beside each other, or the same parts of two.
 *
 *	one job, rank		each rank beside the median rank
 *	one job, attempt	each attempt beside the first
 *	two jobs		each rank or attempt that both have, B beside A
 *
 * A value is the own time of a rank in a step (compare_by_rank.sql), or the time of a step in an
 * attempt. The statistics are those of compare_stats.h.
 */
#ifndef KYMO_VIEWS_COMPARE_COMPARE_BY_H
#define KYMO_VIEWS_COMPARE_COMPARE_BY_H

#include "views/compare/compare.h"

enum compare_by_part { COMPARE_BY_RANK, COMPARE_BY_ATTEMPT };

/* The word of an option; -1: unknown. */
int compare_by_find(const char *word);

struct compare_by {
	enum compare_by_part part;
	/* a_count and b_count are 1; each item is a part, with its values in A and in B */
	struct compare compare;
	char (*names)[KYMO_PATH_BYTES]; /* of the targets: 1 or 2 */
	size_t target_count;
	size_t part_count[2]; /* that A and B have; of one job: the parts of it */
	int32_t usual; /* of one job: the part that the others are compared with */
	char compared[256]; /* which parts, as a sentence */
};

int compare_by_make(enum compare_by_part part, const char *const *targets, size_t target_count,
		    struct compare_by *out, void (*opened)(struct tables *tables),
		    struct kymo_error *err);
void compare_by_fini(struct compare_by *by);
void compare_by_print(const struct compare_by *by, bool all, const struct text_style *style,
		      FILE *out);
void compare_by_json(const struct compare_by *by, struct buf *out);

#endif
