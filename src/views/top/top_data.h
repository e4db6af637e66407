/* The last seconds of a running program, for `kymo top`: gathered by SQL, drawn by top_screen.h. */
#ifndef KYMO_VIEWS_TOP_TOP_DATA_H
#define KYMO_VIEWS_TOP_TOP_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TOP_PLACES 100
#define TOP_THREADS 500
#define TOP_RANKS 64
#define TOP_DEVICES 8
#define TOP_SPARK 40

struct top_place {
	char name[200]; /* "normalise (prep.py:5)" */
	double self_ns, total_ns, running_ns;
};

struct top_thread {
	int32_t pid, tid;
	char name[64];
	char doing[24]; /* "running", "lock", "socket", …; "": not known */
	char what[128]; /* that it waits for; "": not known */
	char place[200]; /* in the program's own code; "": not known */
	double cpu_pct; /* negative: not known */
};

struct top_rank {
	int32_t rank;
	uint64_t steps; /* in the last seconds */
	uint64_t last; /* number of the last one */
};

struct top_device {
	char name[64];
	double busy; /* 0 to 1; negative: not known */
	double used_bytes; /* negative: not known */
};

struct top_data {
	char program[128];
	int32_t pid;
	bool live;
	char end[48]; /* of an ended program: "exit 0", "SIGKILL", … */
	double duration_ns, window_ns;
	/* steps of the main loop in the window */
	uint64_t steps, last_step;
	double median_ns, p99_ns, total_ns, span_ns;
	double phase_ns[4]; /* data, forward, backward, optimizer */
	double last_step_ns; /* end of the last step; negative: there is none */
	double spark_ns[TOP_SPARK];
	size_t spark_count;
	double rss_bytes, peak_bytes, cpu_pct; /* negative: not known */
	uint64_t processes;
	uint64_t emitted, overwritten, dropped;
	double overhead_pct, kymo_pct; /* negative: not known */
	struct top_place places[TOP_PLACES];
	size_t place_count;
	struct top_thread threads[TOP_THREADS];
	size_t thread_count;
	struct top_rank ranks[TOP_RANKS];
	size_t rank_count;
	struct top_device devices[TOP_DEVICES];
	size_t device_count;
};

/* Reads the recording at path once. 0, or a negative errno and *err. */
int top_data_take(const char *path, double window_ns, struct top_data *out, struct kymo_error *err);

#endif
