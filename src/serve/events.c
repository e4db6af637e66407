/* Server-sent events: one thread reads new rows and sends them to all subscribers. A slow
   subscriber misses events without delaying others. */
#include "serve/serve_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/microhttpd.h"

#define TICK_NS 100000000u /* between two looks, with subscribers */
#define REST_NS 500000000u /* without subscribers */
#define LIST_NS 1000000000u
#define STILL_NS 1000000000u /* how often open zones are sent when no zone has ended */
#define BEAT_NS UINT64_C(15000000000)
#define SHARE 8 /* at most one part of this thread's time goes into one program */
#define UNREAD_MOST 65536
#define SUBSCRIBERS_MOST 1024
#define BLOCK_BYTES 16384
#define LINGER_NS UINT64_C(60000000000) /* after the program has ended, --while */

struct subscriber {
	struct MHD_Connection *connection;
	struct serve *serve;
	struct target *target; /* NULL: only the list of targets */
	struct buf unread;
	size_t at; /* bytes of it that were sent */
	bool asleep;
	int64_t missed_from_ns; /* of rows that were not sent */
	uint64_t list_number, state_hash, beat_ns;
	struct subscriber *next;
};

/* Guards the list of subscribers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct subscriber *subscribers;

/* ---- one client ----------------------------------------------------------------------------- */

static ssize_t on_read(void *context, uint64_t position, char *out, size_t most)
{
	struct subscriber *subscriber = context;
	size_t left, take;

	(void)position;
	pthread_mutex_lock(&lock);
	left = subscriber->unread.used - subscriber->at;
	take = left < most ? left : most;
	if (take)
		memcpy(out, subscriber->unread.data + subscriber->at, take);
	subscriber->at += take;
	if (subscriber->at == subscriber->unread.used) {
		buf_reset(&subscriber->unread);
		subscriber->at = 0;
	}
	if (!take) {
		subscriber->asleep = true;
		microhttpd.suspend_connection(subscriber->connection);
	}
	pthread_mutex_unlock(&lock);
	return (ssize_t)take;
}

static void on_free(void *context)
{
	struct subscriber *subscriber = context, **at = &subscribers;

	pthread_mutex_lock(&lock);
	while (*at && *at != subscriber)
		at = &(*at)->next;
	if (*at)
		*at = subscriber->next;
	pthread_mutex_unlock(&lock);
	kymo__fetch_sub_seq_cst(&subscriber->serve->tail_count, 1);
	if (subscriber->target)
		kymo__fetch_sub_seq_cst(&subscriber->target->watchers, 1);
	buf_fini(&subscriber->unread);
	free(subscriber);
}

static struct subscriber *subscribe(struct request *request, struct target *target)
{
	struct subscriber *subscriber = calloc(1, sizeof(*subscriber));

	if (!subscriber)
		return NULL;
	*subscriber = (struct subscriber){ .connection = request->connection,
					   .serve = request->serve,
					   .target = target,
					   .missed_from_ns = INT64_MAX,
					   .beat_ns = target_clock_ns() };
	buf_text(&subscriber->unread, "retry: 2000\n\n");
	kymo__fetch_add_seq_cst(&request->serve->tail_count, 1);
	if (target)
		kymo__fetch_add_seq_cst(&target->watchers, 1);
	pthread_mutex_lock(&lock);
	subscriber->next = subscribers;
	subscribers = subscriber;
	pthread_mutex_unlock(&lock);
	return subscriber;
}

static int events_refuse(struct request *request)
{
	struct MHD_Response *response = microhttpd.create_response_from_buffer(
		request->answer.used, request->answer.data, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	microhttpd.add_response_header(response, "Content-Type", "application/json");
	result = microhttpd.queue_response(request->connection, request->status, response);
	microhttpd.destroy_response(response);
	return result == MHD_YES;
}

int events_answer(struct request *request)
{
	const char *name = request_get(request, "target");
	struct target *target = NULL;
	struct subscriber *subscriber;
	struct MHD_Response *response;
	enum MHD_Result result;

	if (kymo__load_seq_cst(&request->serve->tail_count) >= SUBSCRIBERS_MOST) {
		answer_error(request, 429, "close some of them", "too many open event streams");
		return events_refuse(request);
	}
	if (name && *name) {
		target = request_target(request);
		if (!target)
			return events_refuse(request);
	}
	subscriber = subscribe(request, target);
	response = subscriber ? microhttpd.create_response_from_callback(
					MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, subscriber, on_free)
			      : NULL;
	if (!response) {
		if (subscriber)
			on_free(subscriber);
		return 0;
	}
	microhttpd.set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 60u);
	microhttpd.add_response_header(response, "Content-Type", "text/event-stream");
	microhttpd.add_response_header(response, "Cache-Control", "no-store");
	microhttpd.add_response_header(response, "X-Content-Type-Options", "nosniff");
	result = microhttpd.queue_response(request->connection, 200, response);
	microhttpd.destroy_response(response);
	return result == MHD_YES;
}

/* ---- events --------------------------------------------------------------------------------- */

/* Events of one look; their text is made once for all subscribers. */
struct news {
	struct target *target; /* NULL: for all */
	struct buf rows, state, list; /* without their beginning; empty: none */
	int64_t from_ns; /* of rows */
	uint64_t state_hash, list_number;
};

static void rows_json(const struct feed *feed, struct buf *out)
{
	uint64_t shown = feed->came < FEED_RECENT ? feed->came : FEED_RECENT;

	buf_print(out,
		  "\"gen\":%u,\"now_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"count\":%" PRIu64
		  ",\"came\":%" PRIu64 ",\"lanes\":%zu,\"names\":%zu,\"more\":%s,\"zones\":[",
		  feed->gen, feed->now_ns, feed->end_ns, feed->model.count, feed->came,
		  feed->model.lane_count, feed->model.names.count,
		  feed->came > shown ? "true" : "false");
	for (uint64_t i = 0; i < shown; i++) {
		const struct feed_zone *zone =
			&feed->recent[(feed->came - shown + i) % FEED_RECENT];

		buf_print(out, "%s[%u,%u,%" PRId64 ",%" PRId64 ",%u]", i ? "," : "", zone->lane,
			  zone->row, zone->start_ns, zone->duration_ns, zone->name);
	}
	buf_text(out, "],\"open\":[");
	for (size_t i = 0; i < feed->open_count && i < 2000; i++)
		buf_print(out, "%s{\"lane\":%u,\"row\":%u,\"name\":%u,\"start_ns\":%" PRId64 "}",
			  i ? "," : "", feed->open[i].lane, feed->open[i].row, feed->open[i].name,
			  feed->open[i].start_ns);
	buf_print(out, "],\"sent_unix_ns\":%" PRIu64 "}", clock_realtime_ns());
}

static void state_json(const struct target *target, struct buf *out)
{
	const struct feed *feed = &target->feed;

	buf_print(out, "{\"gen\":%u,\"state\":\"%s\",", feed->gen, target_state(target));
	target_how_json(target, out);
	buf_print(out, ",\"overwritten\":%" PRIu64 ",\"dropped\":%" PRIu64, feed->rows.overwritten,
		  feed->rows.dropped);
}

static uint64_t events_hash_text(const struct buf *text)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < text->used; i++)
		hash = (hash ^ (unsigned char)text->data[i]) * 0x100000001b3u;
	return hash | 1;
}

static void gather_target(struct news *news, bool looked)
{
	struct target *target = news->target;
	const struct feed *feed = &target->feed;
	uint64_t now_ns = target_clock_ns();

	pthread_rwlock_rdlock(&target->feed_lock);
	news->from_ns = feed->came_from_ns;
	if (looked && (feed->came || now_ns - target->told_at_ns > STILL_NS)) {
		rows_json(feed, &news->rows);
		target->told_at_ns = now_ns;
	}
	state_json(target, &news->state);
	/* Figures that always change do not count as a change. */
	news->state_hash = events_hash_text(&news->state);
	buf_print(&news->state,
		  ",\"emitted\":%" PRIu64 ",\"kept\":%" PRIu64 ",\"duration_ns\":%" PRId64 "}",
		  feed->rows.emitted, feed->rows.kept, feed->now_ns);
	pthread_rwlock_unlock(&target->feed_lock);
}

static void events_add_rows(struct subscriber *subscriber, const struct news *news)
{
	int64_t from = news->from_ns < subscriber->missed_from_ns ? news->from_ns
								  : subscriber->missed_from_ns;

	subscriber->missed_from_ns = from;
	if (!news->rows.used || subscriber->unread.used - subscriber->at > UNREAD_MOST)
		return;
	buf_print(&subscriber->unread, "event: rows\ndata: {\"from_ns\":%" PRId64 ",",
		  from == INT64_MAX ? -1
		  : from > 0	    ? from
				    : 0);
	buf_add(&subscriber->unread, news->rows.data, news->rows.used);
	buf_text(&subscriber->unread, "\n\n");
	subscriber->missed_from_ns = INT64_MAX;
}

static void events_add_event(struct subscriber *subscriber, const char *event,
			     const struct buf *data)
{
	buf_print(&subscriber->unread, "event: %s\ndata: ", event);
	buf_add(&subscriber->unread, data->data, data->used);
	buf_text(&subscriber->unread, "\n\n");
}

static void tell_one(struct subscriber *subscriber, const struct news *news, uint64_t now_ns)
{
	if (subscriber->target && subscriber->target == news->target) {
		events_add_rows(subscriber, news);
		if (subscriber->state_hash != news->state_hash)
			events_add_event(subscriber, "state", &news->state);
		subscriber->state_hash = news->state_hash;
	}
	if (news->list.used && subscriber->list_number != news->list_number) {
		events_add_event(subscriber, "targets", &news->list);
		subscriber->list_number = news->list_number;
	}
	if (now_ns - subscriber->beat_ns > BEAT_NS)
		buf_text(&subscriber->unread, ": still here\n\n");
	if (subscriber->unread.used > subscriber->at)
		subscriber->beat_ns = now_ns;
}

/* Resumes connections after releasing the lock, since libmicrohttpd takes locks of its own. A
   suspended connection cannot be closed meanwhile. */
static void events_tell(const struct news *news)
{
	struct MHD_Connection *woken[SUBSCRIBERS_MOST];
	uint64_t now_ns = target_clock_ns();
	size_t count = 0;

	pthread_mutex_lock(&lock);
	for (struct subscriber *s = subscribers; s && count < SUBSCRIBERS_MOST; s = s->next) {
		tell_one(s, news, now_ns);
		if (s->asleep && s->unread.used > s->at) {
			s->asleep = false;
			woken[count++] = s->connection;
		}
	}
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < count; i++)
		microhttpd.resume_connection(woken[i]);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Targets with subscribers, each once. */
static size_t watched(struct target **out, size_t most)
{
	size_t count = 0;

	pthread_mutex_lock(&lock);
	for (struct subscriber *s = subscribers; s && count < most; s = s->next) {
		bool known = !s->target;

		for (size_t i = 0; i < count && !known; i++)
			known = out[i] == s->target;
		if (!known)
			out[count++] = s->target;
	}
	pthread_mutex_unlock(&lock);
	return count;
}

static void tell_list(struct serve *serve)
{
	struct news news = { .target = NULL };

	targets_list(&serve->targets, LIST_NS);
	targets_learn(&serve->targets);
	pthread_mutex_lock(&serve->targets.lock);
	news.list_number = serve->targets.number;
	pthread_mutex_unlock(&serve->targets.lock);
	targets_document(serve, &news.list);
	events_tell(&news);
	buf_fini(&news.list);
}

static void tell_target(struct target *target)
{
	struct news news = { .target = target };
	uint64_t least = target->look_cost_ns * SHARE > TICK_NS ? target->look_cost_ns * SHARE
								: TICK_NS;
	struct kymo_error err;
	bool looked = false;

	/* A packed file does not change, and is read when its zones are requested: this thread
	   serves all subscribers. */
	if (!store_kind_is_sql(target->entry.kind))
		target_look(target, least - TICK_NS / 4, &looked, &err);
	gather_target(&news, looked);
	events_tell(&news);
	buf_fini(&news.rows);
	buf_fini(&news.state);
}

/* A server started by `kymo run` exits after it, when no client is connected. */
static void end_with_program(const struct serve *serve)
{
	int32_t pid = serve->options.while_pid;

	if (pid && kill(pid, 0) && errno == ESRCH && !kymo__load_seq_cst(&serve->tail_count) &&
	    target_clock_ns() - kymo__load_relaxed(&serve->asked_at_ns) > LINGER_NS)
		kill(getpid(), SIGTERM);
}

static void *events_watch(void *context)
{
	struct serve *serve = context;
	struct target *targets[64];

	for (;;) {
		uint64_t began_ns = target_clock_ns(), rest_ns = REST_NS, took_ns;

		if (kymo__load_seq_cst(&serve->tail_count)) {
			size_t count = watched(targets, 64);

			rest_ns = TICK_NS;
			tell_list(serve);
			for (size_t i = 0; i < count; i++)
				tell_target(targets[i]);
		}
		running_queries_look(serve);
		end_with_program(serve);
		took_ns = target_clock_ns() - began_ns;
		if (took_ns < rest_ns)
			usleep((useconds_t)((rest_ns - took_ns) / 1000));
	}
	return NULL;
}

int events_start(struct serve *serve)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attributes, events_watch, serve);
	pthread_attr_destroy(&attributes);
	return -rc;
}
