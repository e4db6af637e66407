/* Private to the files of serve/. */
#ifndef KYMO_SERVE_SERVE_INSIDE_H
#define KYMO_SERVE_SERVE_INSIDE_H

#include <pthread.h>

#include <kymo/atomic.h>

#include "base/buf.h"
#include "serve/serve.h"
#include "serve/target.h"

struct MHD_Connection;

#define SERVE_PARAMETERS 24
#define SERVE_BODY_BYTES (1u << 20)

struct request;

/* Each kind has threads of its own, so that the others do not wait for them. */
enum workers { WORKERS_FAST, WORKERS_SLOW, WORKERS_QUERIES, WORKERS_KINDS };

/* A row of the table of routes (routes.c). */
struct route {
	const char *path;
	const char *method;
	enum workers workers; /* that answer it */
	/* Called by a worker: fills request->answer. */
	void (*answer)(struct request *request);
	/* Called before the request is queued; NULL: none. */
	void (*enter)(struct request *request);
};

/* A query that is queued or runs, so that it can be cancelled (running_queries.c). All members but
   the first two are under running_lock. */
struct running_query {
	char id[64]; /* "": none */
	int socket;
	struct request *request;
	pid_t child; /* that runs it; 0: none */
	bool cancelled;
	struct running_query *next;
};

struct request {
	struct serve *serve;
	struct MHD_Connection *connection;
	const struct route *route;
	char *keys[SERVE_PARAMETERS], *values[SERVE_PARAMETERS];
	size_t parameter_count;
	struct buf body;
	bool too_long;
	bool refused; /* its connection is closed after the answer */
	char if_none_match[64];
	bool gzip; /* accepted by the client */
	bool done; /* answered; set by the worker before it resumes the connection */
	/* The answer: */
	unsigned status;
	const char *type;
	struct buf answer; /* or: */
	const void *asset; /* static */
	size_t asset_bytes;
	bool asset_gzip;
	int fd; /* -1: none */
	char etag[64];
	char file[96]; /* of the download; "": none */
	char cookie[160], location[16];
	struct running_query running; /* of a query */
	struct request *next; /* in a queue */
};

struct serve {
	struct serve_options options;
	struct serve_address address;
	bool loopback;
	struct targets targets;
	pthread_mutex_t running_lock;
	struct running_query *running;
	uint64_t asked_at_ns; /* atomic; the last request */
	int tail_count; /* atomic; subscribers */
};

/* routes.c */
const struct route *routes_find(const char *path, const char *method, bool *other_method);

/* answer.c: what all answers need. */
void answer_error(struct request *request, unsigned status, const char *hint, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* With the status for the error code. */
void answer_failed(struct request *request, int code, const struct kymo_error *err);
const char *request_get(const struct request *request, const char *key); /* NULL: missing */
/* False: not a number; the error was answered. */
bool request_number(struct request *request, const char *key, int64_t fallback, int64_t *out);
/* NULL: there is none; the error was answered. */
struct target *request_target(struct request *request);

/* The answers themselves. */
void answer_page(struct request *request);
void answer_asset(struct request *request);
void answer_targets(struct request *request);
void answer_run(struct request *request);
void answer_range(struct request *request);
void answer_zones(struct request *request);
void answer_map(struct request *request);
void answer_joins(struct request *request);
void answer_flame(struct request *request);
void answer_name(struct request *request);
void answer_source(struct request *request);
void answer_query(struct request *request);
void answer_cancel(struct request *request);
void answer_schema(struct request *request);
void answer_backtrace(struct request *request);
void answer_config(struct request *request);
void answer_report(struct request *request);
void answer_compare(struct request *request);
void answer_export(struct request *request);
void answer_metrics(struct request *request); /* metrics/metrics.c */

void targets_document(struct serve *serve, struct buf *out); /* of /api/targets */
/* Make the document of /api/run ahead of a request, or its first part. */
void run_prepare_first(struct target *target);
void run_prepare(struct target *target);

/* workers.c */
int workers_start(void);
/* False: the queue is full. */
bool workers_add(struct request *request);
/* False: a worker has taken it. */
bool workers_take_back(struct request *request);
/* Lowers the priority of this thread, below fast answers and the recorded programs. */
void workers_yield(void);

/* preload.c: reads the recordings named on the command line ahead of requests. */
int preload_start(struct serve *serve);

/* running_queries.c: from running_queries_enter() to running_queries_leave() a query can be
   cancelled. */
void running_queries_enter(struct request *request);
void running_queries_leave(struct request *request); /* allowed without running_queries_enter() */
/* The child to kill from now on; 0: none. False: it is already cancelled. */
bool running_queries_set(struct request *request, pid_t child);
int running_queries_cancel(struct serve *serve, const char *id);
/* Cancels the queries of clients that have disconnected. */
void running_queries_look(struct serve *serve);

/* http.c: an answer is ready. */
void http_resume(struct request *request);

/* events.c */
int events_start(struct serve *serve);
/* Queues the response itself; returns MHD's result. */
int events_answer(struct request *request);

#endif
