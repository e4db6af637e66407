/* Flame graphs of an interval: of zones from the model, of samples by SQL. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tables/sql_fill.h"
#include "serve/serve_inside.h"
#include "serve_sql.h"
#include "views/query/json.h"
#include "views/query/rows.h"
#include "views/timeline/zone_flame.h"

struct flame_request {
	int64_t from_ns, to_ns, thread;
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
	const struct zone_flame_range range = { asked->from_ns, asked->to_ns, asked->thread };
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

struct sampled_tree {
	struct call_tree tree; /* values[0]: samples */
	struct name_table names;
	double total;
};

static uint32_t sampled_child(struct sampled_tree *to, uint32_t parent, const char *text,
			      size_t bytes, double samples)
{
	const struct name_entry name = { .name = text,
					 .name_bytes = (uint32_t)bytes,
					 .source = "python",
					 .source_bytes = 6,
					 .file = "" };
	uint32_t number = name_table_add(&to->names, &name), node = parent;

	if (number != NAME_TABLE_NONE)
		node = call_tree_child(&to->tree, parent, number);
	if (node != parent)
		to->tree.nodes[node].values[0] += samples;
	return node;
}

/* thread, frames separated by U+0001 (outermost first), count */
static int sample_row(const struct rows *rows, void *context)
{
	struct sampled_tree *to = context;
	double count = rows_number(rows, 2, 0);
	char *thread = rows_take_text(rows, 0), *stack = rows_take_text(rows, 1);
	uint32_t at;

	if (thread && stack) {
		at = sampled_child(to, 0, thread, strlen(thread), count);
		for (const char *frame = stack; *frame;) {
			size_t bytes = strcspn(frame, "\x01");

			at = sampled_child(to, at, frame, bytes, count);
			frame += bytes + (frame[bytes] != 0);
		}
		to->total += count;
	}
	free(thread);
	free(stack);
	return 0;
}

static void sampled_json(const struct sampled_tree *from, struct buf *out)
{
	buf_print(out,
		  "{\"of\":\"samples\",\"unit\":\"samples\",\"gen\":1,\"total\":%.0f,\"nodes\":[",
		  from->total);
	for (size_t i = 1; i < from->tree.count; i++)
		buf_print(out, "%s[%u,%" PRId64 ",%.0f]", i > 1 ? "," : "",
			  from->tree.nodes[i].frame, (int64_t)from->tree.nodes[i].parent - 1,
			  from->tree.nodes[i].values[0]);
	buf_text(out, "],\"lanes\":[],\"names\":{");
	name_table_json(&from->names, NULL, 0, from->names.count, out);
	buf_text(out, "}}\n");
}

static void flame_of_samples(struct request *request, struct target *target,
			     const struct flame_request *asked)
{
	struct tables_options options = { .memory_limit_bytes = UINT64_C(512) << 20,
					  .timeout_ms = 60000 };
	struct sampled_tree tree = { 0 };
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	struct buf sql = { 0 };
	char thread[40] = "true";
	int rc = call_tree_init(&tree.tree)
			 ? error_set(&err, ENOMEM, "out of memory for the flame graph")
			 : target_open_tables(target, &options, &tables, &err);

	if (asked->thread >= 0)
		snprintf(thread, sizeof(thread), "tid = %" PRId64, asked->thread);
	sql_fill(&sql, sql_answer_flame,
		 (struct sql_value[]){ { "from", .number = asked->from_ns },
				       { "to", .number = asked->to_ns },
				       { "thread", .text = thread },
				       { NULL } });
	if (!rc)
		rc = rows_each(tables, buf_get(&sql), sample_row, &tree, &err);
	if (rc)
		answer_failed(request, rc, &err);
	else
		sampled_json(&tree, &request->answer);
	tables_close(tables);
	call_tree_fini(&tree.tree);
	name_table_fini(&tree.names);
	buf_fini(&sql);
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
	if (of && !strcmp(of, "samples")) {
		flame_of_samples(request, target, &asked);
		return;
	}
	if (of && *of && strcmp(of, "zones")) {
		answer_error(request, 400, "of=zones or of=samples", "no such flame graph: %.40s",
			     of);
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
