/* Flame graphs of an interval: of zones from the model, of samples by a child. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve/children/children.h"
#include "serve/serve_inside.h"
#include "views/query/json.h"
#include "views/timeline/zone_flame.h"

struct flame_request {
	int64_t from_ns, to_ns, thread;
	bool native;
	struct rank_set ranks;
};

/* ---- zones ---------------------------------------------------------------------------------- */

/* numbers[]: of each name of the model in the answer, + 1; 0: not in it. */
static void answer_flame_add_names(struct buf *out, const struct zone_model *model,
				   const uint32_t *numbers, size_t count)
{
	uint32_t *name = calloc(count + 1, sizeof(*name));

	for (size_t i = 0; name && i < model->names.count; i++)
		if (numbers[i])
			name[numbers[i] - 1] = (uint32_t)i;
	buf_text(out, ",\"names\":{");
	name_table_json(&model->names, name, 0, name ? count : 0, out);
	buf_char(out, '}');
	free(name);
}

static void answer_flame_add_lanes(struct buf *out, const struct zone_model *model,
				   const struct call_tree *tree)
{
	const char *comma = "";

	buf_text(out, ",\"lanes\":[");
	for (size_t i = 1; i < tree->count; i++) {
		uint32_t lane = tree->nodes[i].frame & ~ZONE_FLAME_LANE;

		if (tree->nodes[i].parent)
			continue;
		buf_print(out, "%s{\"id\":%u,\"note\":\"tid %d\",\"name\":", comma, lane,
			  model->lanes[lane].tid);
		json_text(out, model->lanes[lane].name, strlen(model->lanes[lane].name));
		buf_char(out, '}');
		comma = ",";
	}
	buf_char(out, ']');
}

static int answer_flame_add_zones(struct buf *out, const struct zone_model *model,
				  const struct call_tree *tree)
{
	uint32_t *numbers = calloc(model->names.count + 1, sizeof(*numbers));
	size_t names = 0;
	int rc = numbers ? 0 : -ENOMEM;

	buf_print(out, ",\"total\":%.0f,\"nodes\":[", zone_flame_whole_ns(tree));
	if (!rc)
		rc = zone_flame_json(tree, numbers, &names, out);
	buf_char(out, ']');
	answer_flame_add_lanes(out, model, tree);
	if (!rc)
		answer_flame_add_names(out, model, numbers, names);
	free(numbers);
	return rc;
}

static void flame_of_zones(struct request *request, struct target *target,
			   const struct flame_request *asked)
{
	const struct zone_flame_range range = { asked->from_ns, asked->to_ns, asked->thread,
						&asked->ranks };
	const struct zone_model *model = &target->feed.model;
	struct call_tree tree = { 0 };
	struct buf answer = { 0 };
	int rc = zone_flame_make(model, &range, &tree);

	buf_print(&answer, "{\"of\":\"zones\",\"unit\":\"ns\",\"gen\":%u", target->feed.gen);
	if (!rc)
		rc = answer_flame_add_zones(&answer, model, &tree);
	buf_text(&answer, "}\n");
	if (rc || answer.failed)
		answer_error(request, 503, "request less time",
			     "out of memory for the flame graph");
	else
		buf_add(&request->answer, buf_get(&answer), answer.used);
	buf_fini(&answer);
	call_tree_fini(&tree);
}

/* ---- samples -------------------------------------------------------------------------------- */

static void flame_of_samples(struct request *request, struct target *target,
			     const struct flame_request *asked)
{
	struct children_ask ask = { .question = { .kind = QUESTION_FLAME,
						  .timeout_ms = 60000,
						  .answer_bytes = UINT64_C(256) << 20,
						  .background = true,
						  .from_ns = asked->from_ns,
						  .to_ns = asked->to_ns,
						  .thread = asked->thread,
						  .ranks = asked->ranks,
						  .native = asked->native } };
	struct kymo_error err = { 0 };
	int rc = target_ask(target, &ask, &err);

	if (rc)
		answer_failed(request, rc, &err);
	else
		request->fd = ask.fd;
}

void answer_flame(struct request *request)
{
	const char *of = request_get(request, "of");
	struct flame_request asked;
	struct kymo_error err = { 0 };
	struct target *target = request_target(request);
	int rc;

	if (!target || !request_number(request, "from", 0, &asked.from_ns) ||
	    !request_number(request, "to", INT64_MAX, &asked.to_ns) ||
	    !request_number(request, "thread", -1, &asked.thread))
		return;
	if (!rank_set_read(&asked.ranks, request_get(request, "ranks"))) {
		answer_error(request, 400, "ranks=0,3,8-15", "ranks is not a list of ranks");
		return;
	}
	asked.native = of && !strcmp(of, "native");
	if (of && (!strcmp(of, "samples") || asked.native)) {
		flame_of_samples(request, target, &asked);
		return;
	}
	if (of && *of && strcmp(of, "zones")) {
		answer_error(request, 400, "of=zones, of=samples or of=native",
			     "no such flame graph: %.40s", of);
		return;
	}
	rc = target_look(target, 1000000000u, NULL, &err);
	if (rc) {
		answer_failed(request, rc, &err);
		return;
	}
	pthread_rwlock_rdlock(&target->feed_lock);
	flame_of_zones(request, target, &asked);
	pthread_rwlock_unlock(&target->feed_lock);
}
