/*
 * The offset of one host's clock, from collectives that it took part in with others whose clocks
 * are known. No rank leaves a collective before the last has arrived, so each one bounds the offset
 * from both sides: these bounds hold whatever the network and the scheduler do. Within them the
 * ends give an estimate: after the last arrival all leave at nearly the same time.
 *
 * An offset is a line over the host's own time (a constant drift). Where no line fits the bounds
 * any more, the clock has made a step, and a new piece begins. If pieces do not help either, the
 * calls were paired wrongly: the fit is refused.
 */
#ifndef KYMO_STORE_CLOCK_FIT_H
#define KYMO_STORE_CLOCK_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_FIT_PIECES 8u

/* One collective: times of this host by its own clock, those of the others on the common axis. */
struct clock_fit_event {
	int64_t arrival_ns, end_ns; /* last arrival and first end of this host's ranks */
	int64_t last_ns; /* last arrival of the others: not before this, by their errors */
	int64_t first_end_ns; /* first end of the others: not after this */
	int64_t other_end_ns; /* end of one of the others, the one with the smallest error */
	int64_t other_error_ns; /* its stated error */
	/* last arrival of all, by estimate; CLOCK_FIT_UNKNOWN in a first fit */
	int64_t all_last_ns;
};
#define CLOCK_FIT_UNKNOWN INT64_MIN

/* own time t is t - offset_ns - drift * (t - t0_ns) on the common axis */
struct clock_fit_piece {
	int64_t from_ns; /* own time from which it holds; the first one holds before, too */
	int64_t t0_ns;
	double offset_ns, drift;
	int64_t error_ns; /* from its first collective to its last */
	uint32_t used; /* collectives */
	/* The drift by the ends alone: how long hosts usually take to leave does not change it. */
	double ends_drift, ends_drift_error; /* the error is below 0: not known */
};

struct clock_fit {
	struct clock_fit_piece pieces[CLOCK_FIT_PIECES];
	uint32_t count; /* 0: refused */
	size_t contradictions; /* collectives that no piece fits */
};

/* Events are in the order of other_end_ns. slack_ns: how much the recorded times of a collective
   may be wrong by themselves. False: refused, or out of memory (then contradictions is 0). */
bool clock_fit(const struct clock_fit_event *events, size_t count, int64_t slack_ns,
	       struct clock_fit *out);

/* The offset at the host's own time t. */
double clock_fit_offset(const struct clock_fit_piece *piece, int64_t t_ns);

#endif
