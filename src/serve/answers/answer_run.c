/* The list of targets, and the document of one recording. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "serve/children/children.h"
#include "serve/serve_inside.h"
#include "views/query/json.h"

#include <kymo/kymo.h>

#define FRESH_NS UINT64_C(1500000000) /* a running program's document is not made sooner again */
#define SHARE 4 /* at most this part of a core goes into it */

/* ---- the list ------------------------------------------------------------------------------- */

void targets_document(struct serve *serve, struct buf *out)
{
	const struct target *first = targets_find(&serve->targets, NULL);
	char root[KYMO_PATH_BYTES] = "";

	paths_root(root, sizeof(root), NULL);
	buf_print(out,
		  "{\"now_unix_ns\":%" PRIu64 ",\"version\":\"" KYMO_VERSION
		  "\",\"address\":\"%s:%u\",\"default\":",
		  clock_realtime_ns(), serve->address.host, serve->address.port);
	buf_print(out, first ? "\"%s\"" : "null", first ? first->id : "");
	buf_print(out, first && first->named ? ",\"named\":\"%s\"" : ",\"named\":null",
		  first ? first->id : "");
	buf_text(out, ",\"directory\":");
	json_text(out, root, strlen(root));
	buf_char(out, ',');
	targets_json(&serve->targets, out);
	buf_char(out, '}');
	/* The data of an event is one line. */
	for (size_t i = 0; i < out->used; i++)
		out->data[i] = out->data[i] == '\n' ? ' ' : out->data[i];
}

void answer_targets(struct request *request)
{
	/* The first request of a viewer. */
	children_prepare();
	targets_list(&request->serve->targets, 500000000u);
	targets_learn(&request->serve->targets);
	targets_document(request->serve, &request->answer);
}

/* ---- one recording -------------------------------------------------------------------------- */

static int ask_document(struct target *target, bool first, struct buf *out, struct kymo_error *err)
{
	struct children_ask ask = { .question = { .kind = QUESTION_RUN,
						  .timeout_ms = 120000,
						  .answer_bytes = UINT64_C(256) << 20,
						  .background = !first,
						  .first = first } };
	struct buf made = { 0 };
	int rc = target_ask(target, &ask, err);

	if (!rc)
		rc = children_read_answer(&ask, &made, err);
	if (rc) {
		buf_fini(&made);
		return rc;
	}
	buf_fini(out);
	*out = made;
	return 0;
}

static int make_run(struct target *target, struct kymo_error *err)
{
	uint64_t began_ns = target_clock_ns();
	bool live = target->entry.state == STORE_LIVE;
	int rc = ask_document(target, false, &target->run, err);

	if (rc)
		return rc;
	target->run_at_ns = target_clock_ns();
	target->run_cost_ns = target->run_at_ns - began_ns;
	target->run_number++;
	target->run_live = live;
	return 0;
}

static bool answer_run_is_due(const struct target *target)
{
	uint64_t least = target->run_cost_ns * SHARE > FRESH_NS ? target->run_cost_ns * SHARE
								: FRESH_NS;

	return !target->run.used || (target->run_live && target->entry.state != STORE_LIVE) ||
	       (target->run_live && target_clock_ns() - target->run_at_ns > least);
}

void run_prepare(struct target *target)
{
	struct kymo_error err = { 0 };

	pthread_mutex_lock(&target->run_lock);
	if (answer_run_is_due(target))
		make_run(target, &err);
	pthread_mutex_unlock(&target->run_lock);
}

/* Whether the whole document is there and new enough; false as well while it is made. */
static bool run_is_made(struct target *target)
{
	bool has;

	if (pthread_mutex_trylock(&target->run_lock))
		return false;
	has = !answer_run_is_due(target);
	pthread_mutex_unlock(&target->run_lock);
	return has;
}

void run_prepare_first(struct target *target)
{
	struct kymo_error err = { 0 };

	pthread_mutex_lock(&target->first_lock);
	if (!target->first.used && !run_is_made(target))
		ask_document(target, true, &target->first, &err);
	pthread_mutex_unlock(&target->first_lock);
}

/* The findings and the sums of devices of a large trace take seconds: a page shows the rest before
   them. Of a program that runs, this would be made anew each time. */
static bool answer_first(struct request *request, struct target *target)
{
	if (!request_get(request, "partial") || target->entry.state == STORE_LIVE ||
	    run_is_made(target))
		return false;
	run_prepare_first(target);
	pthread_mutex_lock(&target->first_lock);
	if (target->first.used) {
		buf_print(&request->answer, "{\"gen\":0,\"state\":\"%s\",\"age_ns\":0,",
			  target_state(target));
		buf_add(&request->answer, target->first.data, target->first.used);
		buf_text(&request->answer, "}\n");
	}
	pthread_mutex_unlock(&target->first_lock);
	return request->answer.used > 0;
}

void answer_run(struct request *request)
{
	struct target *target = request_target(request);
	struct kymo_error err = { 0 };
	int rc = 0;

	if (!target || answer_first(request, target))
		return;
	pthread_mutex_lock(&target->run_lock);
	if (answer_run_is_due(target))
		rc = make_run(target, &err);
	if (rc) {
		answer_failed(request, rc, &err);
	} else {
		buf_print(&request->answer,
			  "{\"gen\":%" PRIu64 ",\"state\":\"%s\",\"age_ns\":%" PRIu64 ",",
			  target->run_number, target_state(target),
			  target->run_live ? target_clock_ns() - target->run_at_ns : 0);
		buf_add(&request->answer, target->run.data, target->run.used);
		buf_text(&request->answer, "}\n");
		snprintf(request->etag, sizeof(request->etag), "\"r%" PRIu64 "-%s\"",
			 target->run_number, target_state(target));
	}
	pthread_mutex_unlock(&target->run_lock);
}
