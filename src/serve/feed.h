/*
 * From a recording to the index of its zones: all rows at first, then those that have come since.
 * The rows of a program that runs are read where they lie, without SQL; packed files and what
 * devices did are asked for in SQL.
 */
#ifndef KYMO_SERVE_FEED_H
#define KYMO_SERVE_FEED_H

#include "store/store.h"
#include "tables/tables.h"
#include "views/status/now.h"
#include "views/timeline/zone_model.h"

#define FEED_RECENT 256

struct feed_open {
	uint32_t lane, row, name;
	int64_t start_ns;
};

struct feed_zone {
	uint32_t lane, row, name;
	int64_t start_ns, duration_ns;
};

/* Rows by what became of them. */
struct feed_rows {
	uint64_t emitted, kept, overwritten, dropped;
};

struct feed {
	struct zone_model model;
	uint32_t gen; /* grows when what was told of zones no longer holds */
	bool filled, live;
	int64_t now_ns; /* of the last look; the end of one that has ended */
	int64_t end_ns; /* of the last zone */
	struct feed_open *open;
	size_t open_count;
	struct feed_rows rows;
	uint64_t zones_overwritten; /* before they were seen */
	/* What came with the last look: */
	uint64_t came;
	int64_t came_from_ns; /* the earliest start of them */
	struct feed_zone recent[FEED_RECENT]; /* a ring */
	/* Who it is: */
	char *command;
	int32_t rank, ranks;
	int64_t steps;
	struct now now;
	/* The feed's own: */
	struct feed_process *processes;
	size_t process_count;
	struct feed_stream *streams;
	size_t stream_count;
	uint64_t device_rows;
};

/* Looks at the recording at `path` and takes what is new. 0, or a negative errno and *err: then all
   is as before. */
int feed_look(struct feed *feed, const char *path, struct kymo_error *err);
void feed_fini(struct feed *feed);

#endif
