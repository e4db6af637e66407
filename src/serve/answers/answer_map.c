/* The map of step × rank: a header in JSON, then one byte for each cell. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_inside.h"
#include "views/timeline/step_map.h"

#define COLUMNS_MOST 4096
#define ROWS_MOST 4096

static bool read_map(struct request *request, struct step_map_part *out)
{
	const char *of = request_get(request, "of");
	int64_t columns, rows, first_rank, end_rank;

	if (!request_number(request, "from", 0, &out->from) ||
	    !request_number(request, "to", INT64_MAX, &out->to) ||
	    !request_number(request, "columns", 1024, &columns) ||
	    !request_number(request, "rows", 512, &rows) ||
	    !request_number(request, "first_rank", 0, &first_rank) ||
	    !request_number(request, "end_rank", INT32_MAX, &end_rank))
		return false;
	if (columns < 1 || columns > COLUMNS_MOST || rows < 1 || rows > ROWS_MOST ||
	    first_rank < 0 || end_rank < 0 || out->from < 0 ||
	    !rank_set_read(&out->ranks, request_get(request, "ranks")) ||
	    (of && strcmp(of, "duration") && strcmp(of, "wait"))) {
		answer_error(request, 400,
			     "1 ≤ columns, rows ≤ 4096, ranks=0,3,8-15, of=duration or of=wait",
			     "a parameter of the map is out of range");
		return false;
	}
	out->columns = (size_t)columns;
	out->rows = (size_t)rows;
	out->first_rank = (size_t)first_rank;
	out->end_rank = (size_t)end_rank;
	out->of = of && !strcmp(of, "wait") ? STEP_MAP_WAIT : STEP_MAP_DURATION;
	return true;
}

static void put_map(struct request *request, const struct feed *feed, struct step_map_part *part,
		    bool complete)
{
	signed char *cells = NULL;
	struct buf json = { 0 };
	uint32_t bytes;

	if (step_map_cells(&feed->map, part, &cells)) {
		answer_error(request, 503, NULL, "out of memory for the map");
		return;
	}
	buf_print(&json, "{\"gen\":%u,\"complete\":%s,\"live\":%s,", feed->gen,
		  complete ? "true" : "false", feed->live ? "true" : "false");
	step_map_json(&feed->map, part, &json);
	buf_char(&json, '}');
	buf_fill(&json, ' ', (8 - json.used % 8) % 8);
	bytes = (uint32_t)json.used;
	buf_add(&request->answer, "KSM1", 4);
	buf_add(&request->answer, &bytes, 4);
	buf_add(&request->answer, buf_get(&json), json.used);
	buf_add(&request->answer, cells, part->columns * part->rows);
	request->answer.failed |= json.failed;
	request->type = "application/octet-stream";
	buf_fini(&json);
	free(cells);
}

void answer_map(struct request *request)
{
	struct target *target = request_target(request);
	struct step_map_part part = { .from = 0 };
	struct kymo_error err = { 0 };
	bool complete;
	int rc;

	if (!target || !read_map(request, &part))
		return;
	rc = target_look(target, 1000000000u, NULL, &err);
	if (rc) {
		answer_failed(request, rc, &err);
		return;
	}
	complete = target_look_devices(target, !request_get(request, "partial"));
	pthread_rwlock_rdlock(&target->feed_lock);
	put_map(request, &target->feed, &part, complete);
	pthread_rwlock_unlock(&target->feed_lock);
}
