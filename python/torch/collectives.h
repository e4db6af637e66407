/* What the files of torch.distributed's collectives share. */
#ifndef KYMO_PYTHON_COLLECTIVES_H
#define KYMO_PYTHON_COLLECTIVES_H

#include "torch.h"

struct collective_group {
	const void *backend; /* its address; published last */
	uint32_t name, members; /* ids */
	uint32_t size;
	int32_t *ranks; /* of the world, by rank of the group; NULL: unknown */
	uint64_t collectives; /* calls so far, without point-to-point ones */
	uint64_t last_sequence; /* torch's number of the last call */
};

/* The group with that backend. Takes the GIL the first time; NULL: too many groups. */
struct collective_group *collective_groups_get(const void *backend);

/* On the worker, or on a thread that waits. */
void collective_calls_begin(const void *work, uint64_t ticks);
void collective_calls_end(const void *work, uint64_t ticks);
/* On the caller, after the call was enqueued. work: NULL if its end is not seen. */
void collective_calls_enqueued(const void *work, const struct schema_collective_row *row);

/* In a forked child the names have other ids, and no thread may release the lock. */
void collective_groups_forget(void);
void collective_calls_forget(void);

#endif
