/* Steps of all ranks of a recording, from their streams into the map. */
#ifndef KYMO_SERVE_FEED_STEPS_H
#define KYMO_SERVE_FEED_STEPS_H

#include "store/store.h"
#include "views/timeline/step_map.h"

struct feed_steps {
	const struct store_stream *stream; /* of trace.steps */
	const struct store_process *process;
	size_t number; /* the caller's */
	uint64_t next_row; /* rows before it are in the map */
};

/* Reads new rows of all streams, several at once; next_row becomes that of the next time. 0 or
   -ENOMEM. */
int feed_steps_read(struct step_map *map, struct feed_steps *list, size_t count);

#endif
