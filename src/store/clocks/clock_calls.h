/* Calls of collectives, read from the recordings of all ranks: what clocks are aligned by. */
#ifndef KYMO_STORE_CLOCK_CALLS_H
#define KYMO_STORE_CLOCK_CALLS_H

#include "store/store.h"

/* What makes calls of different ranks one collective. */
struct clock_call_key {
	uint64_t seq;
	uint32_t group, members, op;
	int32_t attempt;
};

struct clock_call {
	struct clock_call_key key;
	uint32_t domain;
	int64_t arrival_ns, end_ns;
};

struct clock_calls {
	struct clock_call *list;
	size_t count, room;
	bool no_memory;
};

/* Appends the calls of a recording, sorted by key and domain, with one for each domain. Reading is
   bounded: of a large job a part is taken. The caller frees the list. */
void clock_calls_read(struct clock_calls *calls, const struct recording *recording);
int clock_calls_compare_keys(const struct clock_call_key *a, const struct clock_call_key *b);
/* False: sums of such times could overflow. */
bool clock_calls_is_time(int64_t ns);

#endif
