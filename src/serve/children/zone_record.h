/*
 * Zones that a child has read by SQL, as a sequence of records of 24 bytes. Lanes and names are
 * numbered from 0 in the order of their records, which come before the first use. A lane is
 * followed by a struct zone_record_lane, a name and a run by their texts, padded to 8 bytes.
 */
#ifndef KYMO_SERVE_CHILDREN_ZONE_RECORD_H
#define KYMO_SERVE_CHILDREN_ZONE_RECORD_H

#include <stdint.h>

enum zone_record_kind {
	ZONE_RECORD_ZONE,
	ZONE_RECORD_OPEN, /* an open zone; no duration */
	ZONE_RECORD_LANE,
	ZONE_RECORD_NAME, /* name: the line; start: bytes of the name; duration: source, file */
	ZONE_RECORD_RUN, /* followed by a struct zone_record_run; start: bytes of the command */
	ZONE_RECORD_STEP, /* name: the rank; followed by the number of the step */
	ZONE_RECORD_WAIT, /* likewise; duration: wait of its collectives */
	ZONE_RECORD_END, /* start: zones without a lane. A sequence without it is cut */
	ZONE_RECORD_KINDS
};

struct zone_record {
	uint16_t lane;
	uint8_t row, kind;
	uint32_t name;
	uint64_t start, duration; /* ns */
};

struct zone_record_lane {
	char name[64], host[64];
	int32_t pid, tid, rank;
	uint32_t kind; /* enum zone_model_kind */
};

struct zone_record_run {
	int64_t duration_ns, steps;
	int32_t rank, ranks;
	uint64_t emitted, kept, overwritten, dropped;
};

/* Both numbers of a name are below 2^32. */
#define ZONE_RECORD_TEXTS(source, file) ((uint64_t)(source) << 32 | (file))
#define ZONE_RECORD_PADDED(bytes) (((uint64_t)(bytes) + 7) & ~UINT64_C(7))

#endif
