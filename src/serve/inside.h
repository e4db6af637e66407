/* What the files of serve/ share. Not for others. */
#ifndef KYMO_SERVE_INSIDE_H
#define KYMO_SERVE_INSIDE_H

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
	struct request *next; /* in a queue */
};

/* A query that runs, so that it can be cancelled. */
struct running {
	char id[64];
	struct tables *tables;
	bool cancelled;
	struct running *next;
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

/* jobs.c */
int jobs_start(void);
/* False: there are too many already. */
bool jobs_add(struct request *request);

/* http.c: an answer is ready. */
void http_resume(struct request *request);

/* tail.c */
int tail_start(struct serve *serve);
/* Queues the answer by itself; MHD's result. */
int tail_answer(struct request *request);

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
