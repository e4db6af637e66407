/*
 * Fills the model of a recording's timeline: all rows at first, then new ones at every look. Rows
 * of directories and snapshots are read directly from their streams; packed files and operations
 * of devices are read by SQL, in a child.
 */
#ifndef KYMO_SERVE_FEED_H
#define KYMO_SERVE_FEED_H

#include "store/store.h"
#include "views/status/now.h"
#include "views/timeline/step_map.h"
#include "views/timeline/zone_model.h"

#define FEED_RECENT 256
#define FEED_ZONES_MOST UINT64_C(48000000) /* about 1 GiB */
#define FEED_NAMES_MOST 262144

struct feed_open {
	uint32_t lane, row, name;
	int64_t start_ns;
};

struct feed_zone {
	uint32_t lane, row, name;
	int64_t start_ns, duration_ns;
};

/* Numbers of rows. */
struct feed_rows {
	uint64_t emitted, kept, overwritten, dropped;
};

struct feed {
	struct zone_model model;
	struct step_map map;
	uint32_t gen; /* grows when zones sent before are no longer valid */
	bool filled, live;
	int64_t now_ns; /* time of the last look; the end if it has ended */
	int64_t end_ns; /* of the last zone */
	struct feed_open *open;
	size_t open_count;
	struct feed_rows rows;
	uint64_t zones_overwritten; /* before they were read */
	/* New zones of the last look: */
	uint64_t came;
	int64_t came_from_ns; /* their earliest start */
	struct feed_zone recent[FEED_RECENT]; /* a ring */
	/* About the run: */
	char *command;
	int32_t rank, ranks;
	int64_t steps;
	struct now now;
	/* Private: */
	struct feed_process *processes;
	size_t process_count;
	struct feed_stream *streams;
	size_t stream_count;
	/* Rows of tables that feed_devices_ask() reads: recorded, and read. */
	uint64_t device_rows;
	uint64_t device_rows_read;
	uint32_t ns_clock; /* of what SQL answers, + 1; 0: none */
	bool marked; /* it has zones other than garbage collections */
	uint64_t sample_rows, samples_told_at_ns; /* of the last event about them, and its time */
};

/* Reads the new rows of the recording at `path`. 0, or a negative errno and *err; zones that were
   read before the error stay. Of a directory or a job, zones that no thread made are left out: they
   are read in two parts, of which only the second changes the feed. */
int feed_look(struct feed *feed, const char *path, struct kymo_error *err);
/* What no thread made. The critical path takes much longer than all else, which is therefore shown
   before it at the first time. */
enum feed_part {
	FEED_DEVICES, /* all */
	FEED_QUEUES, /* all but the path */
	FEED_PATH, /* the path, after the others */
};
/* Whether there are rows of devices or collectives that were not read. */
bool feed_devices_due(const struct feed *feed);
/* Reads them; returns a descriptor, or a negative errno and *err. The caller does not hold a lock:
   this may take seconds. */
int feed_devices_ask(const char *path, bool live, enum feed_part part, struct kymo_error *err);
/* Takes them and closes the descriptor. `rows`: feed->device_rows when it was asked; after the
   queues alone these are still due. */
void feed_devices_take(struct feed *feed, int fd, const char *path, enum feed_part part,
		       uint64_t rows);
void feed_fini(struct feed *feed);

#endif
