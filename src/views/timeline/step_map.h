/*
 * Steps of all ranks of a job, as a map of step × rank: how far the duration of a step, or the time
 * that it waited in collectives, is from the median of the ranks. Any part of it can be requested
 * at any resolution; a cell of several steps has the value that is farthest from the median, so
 * that one slow step of one rank is visible on every scale. Not thread-safe: the owner locks it.
 */
#ifndef KYMO_VIEWS_TIMELINE_STEP_MAP_H
#define KYMO_VIEWS_TIMELINE_STEP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "views/timeline/rank_set.h"

#define STEP_MAP_STEPS_MOST UINT64_C(16000000) /* of all ranks: 256 MB */
#define STEP_MAP_NONE (-128) /* a cell without a step */

enum step_map_value { STEP_MAP_DURATION, STEP_MAP_WAIT };

struct step_map_step {
	int64_t start_ns;
	float duration_ns; /* below 0: no such step */
	float wait_ns; /* below 0: not known */
};

struct step_map_rank {
	int32_t rank;
	int64_t first; /* step of steps[0] */
	size_t count, room;
	struct step_map_step *steps;
};

struct step_map {
	struct step_map_rank *ranks; /* by rank */
	size_t rank_count, rank_room;
	int64_t first, end; /* steps of any rank: first to end - 1 */
	uint64_t cells; /* entries of all ranks */
	uint64_t hidden; /* steps for which there was no room */
	bool waits; /* some wait is known */
	/* Of each step from first on, after step_map_settle(): */
	float *median_ns, *median_wait_ns;
	size_t median_count;
	int64_t changed_from; /* steps from here on are newer than the medians */
};

/* A later row of the same rank and step replaces the earlier: a job that was started again repeats
   steps. A rank below 0 is ignored. 0 or -ENOMEM. */
int step_map_add(struct step_map *map, int32_t rank, int64_t step, int64_t start_ns,
		 int64_t duration_ns);
/* Room for so many steps from `first` on, before those of a rank are added. 0 or -ENOMEM. */
int step_map_expect(struct step_map *map, int32_t rank, int64_t first, uint64_t count);
/* Moves the steps of `from`, which has one rank, to the map; as step_map_add() of each. `from` is
   empty after it. */
int step_map_join(struct step_map *map, struct step_map *from);
/* Adds to a step that the map has. */
void step_map_add_wait(struct step_map *map, int32_t rank, int64_t step, int64_t wait_ns);
void step_map_forget_waits(struct step_map *map);
/* Computes the medians of new steps. 0 or -ENOMEM. */
int step_map_settle(struct step_map *map);
void step_map_fini(struct step_map *map);

/* A part of the map: `columns` × `rows` cells at most. */
struct step_map_part {
	int64_t from, to; /* steps from `from` to `to` - 1 */
	size_t first_rank, end_rank; /* among the chosen ranks */
	struct rank_set ranks;
	size_t columns, rows;
	enum step_map_value of;
};

/* The cells, row after row: percent of the median duration above (or below) the median, from -127
   to 127. part->columns and ->rows become those of the answer; to and from are cut to what there
   is. 0 or -ENOMEM. */
int step_map_cells(const struct step_map *map, struct step_map_part *part, signed char **out);
/* Members of a JSON object about the part: steps, ranks; of a single cell the step that gave it its
   value. */
void step_map_json(const struct step_map *map, const struct step_map_part *part, struct buf *out);

#endif
