/* What the files of serve/ share. Not for others. */
#ifndef KYMO_SERVE_SERVE_INSIDE_H
#define KYMO_SERVE_SERVE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "serve/serve.h"
#include "serve/target.h"
#include "tables/tables.h"

struct MHD_Connection;

#define SERVE_PARAMETERS 24
#define SERVE_BODY_BYTES (1u << 20)

struct request;

/* A row of the table of what is answered (routes.c). */
struct route {
	const char *path;
	const char *method;
	bool slow; /* by the workers that may take long */
	/* By a worker: fills request->answer. */
	void (*answer)(struct request *request);
	/* Before it waits for a worker; NULL: nothing to do. */
	void (*enter)(struct request *request);
};

/* A query that waits for a worker or runs, so that it can be cancelled (running.c). Under
   running_lock, but for the first two. */
struct running {
	char id[64]; /* "": none */
	int socket;
	struct request *request;
	struct tables *tables; /* NULL: they are not open yet */
	bool cancelled;
	struct running *next;
};

struct request {
	struct serve *serve;
	struct MHD_Connection *connection;
	const struct route *route;
	char *keys[SERVE_PARAMETERS], *values[SERVE_PARAMETERS];
	size_t parameter_count;
	struct buf body;
	bool too_long;
	char if_none_match[64];
	bool gzip; /* the client takes it */
	bool done; /* answered; written by the worker before it resumes the connection */
	/* The answer: */
	unsigned status;
	const char *type;
	struct buf answer; /* or: */
	const void *asset; /* that lives for ever */
	size_t asset_bytes;
	bool asset_gzip;
	int fd; /* -1: none */
	char etag[64];
	char file[96]; /* to save it as; "": not to be saved */
	char cookie[128], location[16];
	struct running running; /* of a query */
	struct request *next; /* in a queue */
};

struct serve {
	struct serve_options options;
	struct serve_address address;
	bool loopback;
	struct targets targets;
	pthread_mutex_t running_lock;
	struct running *running;
	_Atomic uint64_t asked_at_ns; /* the last request */
	_Atomic int tail_count;
};

/* routes.c */
const struct route *routes_find(const char *path, const char *method, bool *other_method);

/* answer.c: what all answers need. */
void answer_error(struct request *request, unsigned status, const char *hint, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* With the status that belongs to the code. */
void answer_failed(struct request *request, int code, const struct kymo_error *err);
const char *request_get(const struct request *request, const char *key); /* NULL: not there */
/* False, and answered: it is no such number. */
bool request_number(struct request *request, const char *key, int64_t fallback, int64_t *out);
/* NULL, and answered: there is none. */
struct target *request_target(struct request *request);

/* The answers themselves. */
void answer_page(struct request *request);
void answer_asset(struct request *request);
void answer_targets(struct request *request);
void answer_run(struct request *request);
void answer_range(struct request *request);
void answer_zones(struct request *request);
void answer_flame(struct request *request);
void answer_name(struct request *request);
void answer_query(struct request *request);
void answer_cancel(struct request *request);
void answer_schema(struct request *request);
void answer_backtrace(struct request *request);
void answer_config(struct request *request);
void answer_report(struct request *request);
void answer_compare(struct request *request);
void answer_export(struct request *request);

void targets_document(struct serve *serve, struct buf *out); /* of /api/targets */
/* The document of /api/run, so that it is there when it is asked for. */
void run_prepare(struct target *target);

/* jobs.c */
int workers_start(void);
/* False: there are too many already. */
bool workers_add(struct request *request);
/* False: a worker has it. */
bool workers_take_back(struct request *request);
/* What this thread does from now on may take long: pictures, and the programs that are watched,
   come before it. */
void workers_yield(void);

/* prepare.c: reads what was named on the command line, before anybody asks. */
int preload_start(struct serve *serve);

/* running.c: from running_enter() to running_leave() a query can be cancelled. */
void running_enter(struct request *request);
void running_leave(struct request *request); /* fine, too, for one that never entered */
/* What to interrupt from now on; NULL: nothing more. False: it was cancelled before. */
bool running_set(struct request *request, struct tables *tables);
int running_cancel(struct serve *serve, const char *id);
/* Cancels what nobody waits for any more. */
void running_look(struct serve *serve);

/* http.c: an answer is ready. */
void http_resume(struct request *request);

/* tail.c */
int events_start(struct serve *serve);
/* Queues the answer by itself; MHD's result. */
int events_answer(struct request *request);

/* access.c: who may ask. 0, or the status, with the answer made. */
struct access {
	const char *host, *origin, *site, *authorization, *cookie, *token, *content_type;
	bool post;
	const void *peer; /* struct sockaddr */
};
unsigned access_check(struct request *request, const struct access *access);
/* Whether the owner of a connection to ourselves is found. */
bool access_knows_users(uint16_t port);
int access_make_token(char *out, size_t out_bytes);

#endif
