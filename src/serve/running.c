/* Queries from when they are taken until they are answered: by their id they are cancelled, and
   with a client that went away. */
#include "serve/serve_inside.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "serve/json_read.h"
#include "serve/mhd.h"

static void read_id(const struct request *request, char *out, size_t out_bytes)
{
	struct json_read json;
	const char *id = NULL;

	if (!json_read_object(buf_get(&request->body), request->body.used, &json))
		id = json_read_get(&json, "id");
	snprintf(out, out_bytes, "%s", id ? id : "");
	json_read_fini(&json);
}

void running_enter(struct request *request)
{
	const union MHD_ConnectionInfo *info = mhd.get_connection_info(
		request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct running *running = &request->running;
	struct serve *serve = request->serve;

	*running = (struct running){ .request = request, .socket = info ? info->connect_fd : -1 };
	read_id(request, running->id, sizeof(running->id));
	pthread_mutex_lock(&serve->running_lock);
	running->next = serve->running;
	serve->running = running;
	pthread_mutex_unlock(&serve->running_lock);
}

/* Under running_lock. */
static void unlink_running(struct serve *serve, const struct running *running)
{
	struct running **at = &serve->running;

	while (*at && *at != running)
		at = &(*at)->next;
	if (*at)
		*at = running->next;
}

bool running_set(struct request *request, struct tables *tables)
{
	bool cancelled;

	pthread_mutex_lock(&request->serve->running_lock);
	request->running.tables = tables;
	cancelled = request->running.cancelled;
	pthread_mutex_unlock(&request->serve->running_lock);
	return !cancelled;
}

void running_leave(struct request *request)
{
	pthread_mutex_lock(&request->serve->running_lock);
	unlink_running(request->serve, &request->running);
	pthread_mutex_unlock(&request->serve->running_lock);
}

/* Under running_lock. One that still waits for a worker is taken out of the queue and put before
   *waited; one that opens its tables looks itself; what the tables do is interrupted until it has
   ended. */
static void running_stop(struct running *running, struct request **waited)
{
	struct request *request = running->request;

	running->cancelled = true;
	if (running->tables) {
		tables_interrupt(running->tables);
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

int running_cancel(struct serve *serve, const char *id)
{
	struct request *waited = NULL;
	int count = 0;

	pthread_mutex_lock(&serve->running_lock);
	for (struct running *r = serve->running, *next; r; r = next) {
		next = r->next;
		if (!strcmp(r->id, id)) {
			running_stop(r, &waited);
			count++;
		}
	}
	pthread_mutex_unlock(&serve->running_lock);
	answer_waited(waited);
	return count;
}

/* libmicrohttpd does not look at a connection that waits for its answer. */
static bool has_gone(const struct running *running)
{
	struct pollfd client = { .fd = running->socket, .events = POLLRDHUP };

	return poll(&client, 1, 0) == 1;
}

void running_look(struct serve *serve)
{
	struct request *waited = NULL;

	pthread_mutex_lock(&serve->running_lock);
	for (struct running *r = serve->running, *next; r; r = next) {
		next = r->next;
		if (!r->cancelled && has_gone(r))
			running_stop(r, &waited);
	}
	pthread_mutex_unlock(&serve->running_lock);
	answer_waited(waited);
}
