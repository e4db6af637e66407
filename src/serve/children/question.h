/*
 * What kymo serve and the processes that run its SQL send each other, over a socket of whole
 * messages. A question comes with a file in memory, which holds the SQL at first and is the answer
 * in the end. The server treats messages and answers as untrusted.
 */
#ifndef KYMO_SERVE_CHILDREN_QUESTION_H
#define KYMO_SERVE_CHILDREN_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/format.h"
#include "views/timeline/rank_set.h"

#define QUESTION_SOCKET 3 /* descriptor of the child */

enum question_kind {
	QUESTION_QUERY, /* SQL of a client */
	QUESTION_RUN, /* the document of /api/run */
	QUESTION_RANGE, /* the part of /api/range that is SQL */
	QUESTION_SCHEMA,
	QUESTION_FLAME, /* of samples */
	QUESTION_SOURCE, /* files; or one of them, whose name is sent in place of SQL */
	QUESTION_ZONES, /* zone_record.h: all of a packed file */
	QUESTION_DEVICES, /* likewise: the two that follow */
	QUESTION_QUEUES, /* operations of devices, collectives, samples */
	QUESTION_PATH, /* the critical path */
	QUESTION_JOINS, /* what joins zones of different tracks */
	QUESTION_METRICS, /* figures of /metrics: lines of family, labels and value with tabs */
	QUESTION_KINDS
};

enum question_joins {
	QUESTION_PARTNERS, /* the ranks of a collective */
	QUESTION_COLLECTIVES, /* those of a time range */
	QUESTION_LAUNCHES, /* of the operations of a time range */
	QUESTION_LAUNCHED, /* operations that a thread launched in a time range */
	QUESTION_LINKS, /* forward and backward operators that belong together */
	QUESTION_JOINS_KINDS
};

struct question {
	uint32_t kind;
	uint32_t timeout_ms; /* of each statement; the server waits a little longer */
	uint64_t memory_bytes; /* constant for a child */
	uint64_t answer_bytes; /* at most */
	bool background; /* at a lower priority, from the first question on */
	char path[KYMO_PATH_BYTES]; /* of the recording; constant for a child */
	int64_t from_ns, to_ns, thread; /* of QUESTION_RANGE and QUESTION_FLAME */
	struct rank_set ranks; /* of those, of QUESTION_SOURCE and of QUESTION_JOINS */
	int64_t pid; /* of QUESTION_JOINS; -1: of any process */
	uint32_t joins; /* of QUESTION_JOINS: enum question_joins */
	bool native; /* of QUESTION_FLAME: CPU time, with native frames */
	bool first; /* of QUESTION_RUN: the part that takes little time */
	/* Of QUESTION_QUERY: */
	char format[16]; /* of views/query/output.h; "": columns, rows and figures as JSON */
	char id[64]; /* "": none */
	char scratch[256]; /* a directory for temporary files; "": none is needed */
	int32_t columns; /* of a table; 0: no limit */
	uint64_t limit; /* rows */
};

enum question_stage {
	QUESTION_NOT_OPENED, /* the recording cannot be opened: rc and err */
	QUESTION_OPENED, /* the time limit begins */
	QUESTION_DONE, /* rc and err, or the answer */
	QUESTION_STAGES
};

struct question_reply {
	uint32_t stage;
	int32_t rc; /* 0 or a negative errno */
	struct kymo_error err;
};

#endif
