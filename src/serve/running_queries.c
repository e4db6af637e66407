/* Queries from their request to their answer. They can be cancelled by id, and are cancelled when
   the client disconnects. */
#include "serve/serve_inside.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "serve/json_read.h"
#include "serve/microhttpd.h"

static void read_id(const struct request *request, char *out, size_t out_bytes)
{
	struct json_read json;
	const char *id = NULL;

	if (!json_read_object(buf_get(&request->body), request->body.used, &json))
		id = json_read_get(&json, "id");
	snprintf(out, out_bytes, "%s", id ? id : "");
	json_read_fini(&json);
}

void running_queries_enter(struct request *request)
{
	const union MHD_ConnectionInfo *info = microhttpd.get_connection_info(
		request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct running_query *running = &request->running;
	struct serve *serve = request->serve;

	*running = (struct running_query){ .request = request,
					   .socket = info ? info->connect_fd : -1 };
	read_id(request, running->id, sizeof(running->id));
	pthread_mutex_lock(&serve->running_lock);
	running->next = serve->running;
	serve->running = running;
	pthread_mutex_unlock(&serve->running_lock);
}

/* Under running_lock. */
static void unlink_running(struct serve *serve, const struct running_query *running)
{
	struct running_query **at = &serve->running;

	while (*at && *at != running)
		at = &(*at)->next;
	if (*at)
		*at = running->next;
}

bool running_queries_set(struct request *request, pid_t child)
{
	bool cancelled;

	pthread_mutex_lock(&request->serve->running_lock);
	request->running.child = child;
	cancelled = request->running.cancelled;
	pthread_mutex_unlock(&request->serve->running_lock);
	return !cancelled;
}

void running_queries_leave(struct request *request)
{
	pthread_mutex_lock(&request->serve->running_lock);
	unlink_running(request->serve, &request->running);
	pthread_mutex_unlock(&request->serve->running_lock);
}

/* Under running_lock. A query that waits for a worker is removed from the queue and put before
   *waited; one that has no child yet checks `cancelled` itself; the child of one that runs is
   killed: some functions of DuckDB cannot be interrupted. */
static void running_queries_stop(struct running_query *running, struct request **waited)
{
	struct request *request = running->request;

	running->cancelled = true;
	if (running->child) {
		kill(running->child, SIGKILL);
	} else if (workers_take_back(request)) {
		unlink_running(request->serve, running);
		request->next = *waited;
		*waited = request;
	}
}

/* Without the lock: libmicrohttpd takes locks of its own. */
static void answer_waited(struct request *waited)
{
	struct kymo_error err = { 0 };

	error_set(&err, ECANCELED, "the query was cancelled");
	for (struct request *next; waited; waited = next) {
		next = waited->next;
		answer_failed(waited, -ECANCELED, &err);
		http_resume(waited);
	}
}

int running_queries_cancel(struct serve *serve, const char *id)
{
	struct request *waited = NULL;
	int count = 0;

	pthread_mutex_lock(&serve->running_lock);
	for (struct running_query *r = serve->running, *next; r; r = next) {
		next = r->next;
		if (!strcmp(r->id, id)) {
			running_queries_stop(r, &waited);
			count++;
		}
	}
	pthread_mutex_unlock(&serve->running_lock);
	answer_waited(waited);
	return count;
}

/* libmicrohttpd does not look at a connection that waits for its answer. */
static bool has_gone(const struct running_query *running)
{
	struct pollfd client = { .fd = running->socket, .events = POLLRDHUP };

	return poll(&client, 1, 0) == 1;
}

void running_queries_look(struct serve *serve)
{
	struct request *waited = NULL;

	pthread_mutex_lock(&serve->running_lock);
	for (struct running_query *r = serve->running, *next; r; r = next) {
		next = r->next;
		if (!r->cancelled && has_gone(r))
			running_queries_stop(r, &waited);
	}
	pthread_mutex_unlock(&serve->running_lock);
	answer_waited(waited);
}
