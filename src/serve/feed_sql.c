#include "serve/feed_sql.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "serve/children/children.h"
#include "serve/children/zone_record.h"

#define TIMEOUT_MS 60000
#define ANSWER_BYTES (FEED_ZONES_MOST * sizeof(struct zone_record) + (UINT64_C(256) << 20))
#define BLOCK_BYTES ((size_t)1 << 20)
#define TEXT_BYTES_MOST ((uint64_t)16 << 20)
#define TIME_MOST ((uint64_t)INT64_MAX / 4)

/* Reads the records of a child. Nothing in them is trusted: they are copied, then checked. */
struct taking {
	struct feed *feed;
	int fd;
	uint64_t at; /* of the next block */
	char *block;
	size_t used, next;
	uint32_t clock;
	uint32_t *lane_of, *name_of; /* of its numbers: those of the model */
	size_t lane_count, lane_room, name_count, name_room;
	char *text;
	bool ended;
};

/* ---- bytes ---------------------------------------------------------------------------------- */

/* The memory of what was read is freed at once: there are then not two copies of all zones. */
static bool feed_sql_next_block(struct taking *taking)
{
	ssize_t got = pread(taking->fd, taking->block, BLOCK_BYTES, (off_t)taking->at);

	if (got <= 0)
		return false;
	fallocate(taking->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)taking->at, got);
	taking->at += (uint64_t)got;
	taking->used = (size_t)got;
	taking->next = 0;
	return true;
}

/* False: the records are cut. */
static bool feed_sql_get(struct taking *taking, void *out, uint64_t count)
{
	char *to = out;

	while (count) {
		size_t here = taking->used - taking->next;

		if (!here && !feed_sql_next_block(taking))
			return false;
		here = taking->used - taking->next;
		here = here < count ? here : (size_t)count;
		memcpy(to, taking->block + taking->next, here);
		taking->next += here;
		to += here;
		count -= here;
	}
	return true;
}

/* Texts of `bytes` in taking->text, with a NUL. */
static bool feed_sql_get_text(struct taking *taking, uint64_t bytes)
{
	char *text;

	if (bytes > TEXT_BYTES_MOST)
		return false;
	text = realloc(taking->text, ZONE_RECORD_PADDED(bytes) + 1);
	if (!text)
		return false;
	taking->text = text;
	if (!feed_sql_get(taking, text, ZONE_RECORD_PADDED(bytes)))
		return false;
	text[bytes] = '\0';
	return true;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Lanes of an earlier look are used again. */
static int64_t feed_sql_find_lane(struct zone_model *model, const struct zone_model_lane *lane)
{
	for (size_t i = 0; i < model->lane_count; i++)
		if (model->lanes[i].pid == lane->pid && model->lanes[i].tid == lane->tid &&
		    model->lanes[i].rank == lane->rank && model->lanes[i].kind == lane->kind &&
		    !strcmp(model->lanes[i].host, lane->host) &&
		    !strcmp(model->lanes[i].name, lane->name))
			return (int64_t)i;
	return zone_model_lane(model, lane);
}

static int feed_sql_take_lane(struct taking *taking)
{
	struct zone_model_lane lane = { .clock = taking->clock };
	struct zone_record_lane about;
	int64_t at;

	if (!feed_sql_get(taking, &about, sizeof(about)) || about.kind >= ZONE_MODEL_KINDS)
		return -EIO;
	about.name[sizeof(about.name) - 1] = '\0';
	about.host[sizeof(about.host) - 1] = '\0';
	memcpy(lane.name, about.name, sizeof(lane.name));
	memcpy(lane.host, about.host, sizeof(lane.host));
	lane.pid = about.pid;
	lane.tid = about.tid;
	lane.rank = about.rank;
	lane.kind = (enum zone_model_kind)about.kind;
	at = feed_sql_find_lane(&taking->feed->model, &lane);
	if (at < 0 || !grow((void **)&taking->lane_of, &taking->lane_room, taking->lane_count,
			    sizeof(*taking->lane_of)))
		return at == -ENOSPC ? -EIO : -ENOMEM;
	taking->lane_of[taking->lane_count++] = (uint32_t)at;
	return 0;
}

static int feed_sql_take_name(struct taking *taking, const struct zone_record *record)
{
	uint64_t source = record->duration >> 32, file = record->duration & UINT32_MAX;
	struct name_entry entry = { .line = (int32_t)record->name };
	uint32_t number;

	if (record->start > TEXT_BYTES_MOST || source > TEXT_BYTES_MOST || file > TEXT_BYTES_MOST ||
	    !feed_sql_get_text(taking, record->start + source + file))
		return -EIO;
	entry.name = taking->text;
	entry.name_bytes = (uint32_t)record->start;
	entry.source = taking->text + record->start;
	entry.source_bytes = (uint32_t)source;
	entry.file = taking->text + record->start + source;
	entry.file_bytes = (uint32_t)file;
	number = name_table_add(&taking->feed->model.names, &entry);
	if (number == NAME_TABLE_NONE || !grow((void **)&taking->name_of, &taking->name_room,
					       taking->name_count, sizeof(*taking->name_of)))
		return -ENOMEM;
	taking->name_of[taking->name_count++] = number;
	return 0;
}

static int feed_sql_take_zone(struct taking *taking, const struct zone_record *record)
{
	struct feed *feed = taking->feed;
	uint32_t lane, name;

	if (record->lane >= taking->lane_count || record->name >= taking->name_count ||
	    record->start > TIME_MOST || record->duration > TIME_MOST)
		return -EIO;
	lane = taking->lane_of[record->lane];
	name = taking->name_of[record->name];
	if (record->kind == ZONE_RECORD_ZONE)
		return zone_model_add(&feed->model, lane, record->row, record->start,
				      record->duration, name);
	if (!grow_short((void **)&feed->open, feed->open_count, sizeof(*feed->open)))
		return -ENOMEM;
	feed->open[feed->open_count++] = (struct feed_open){
		.lane = lane, .row = record->row, .name = name, .start_ns = (int64_t)record->start
	};
	return 0;
}

static int feed_sql_take_step(struct taking *taking, const struct zone_record *record)
{
	struct step_map *map = &taking->feed->map;
	int64_t step;

	if (!feed_sql_get(taking, &step, sizeof(step)) || record->name > INT32_MAX)
		return -EIO;
	if (record->start > TIME_MOST || record->duration > TIME_MOST)
		return 0;
	if (record->kind == ZONE_RECORD_STEP)
		return step_map_add(map, (int32_t)record->name, step, (int64_t)record->start,
				    (int64_t)record->duration);
	step_map_add_wait(map, (int32_t)record->name, step, (int64_t)record->duration);
	return 0;
}

static int feed_sql_take_run(struct taking *taking, const struct zone_record *record)
{
	struct feed *feed = taking->feed;
	struct zone_record_run run;

	if (!feed_sql_get(taking, &run, sizeof(run)) || !feed_sql_get_text(taking, record->start))
		return -EIO;
	free(feed->command);
	feed->command = strdup(taking->text);
	feed->now_ns = run.duration_ns;
	feed->rank = run.rank;
	feed->ranks = run.ranks;
	feed->steps = run.steps;
	feed->rows = (struct feed_rows){ .emitted = run.emitted,
					 .kept = run.kept,
					 .overwritten = run.overwritten,
					 .dropped = run.dropped };
	return feed->command ? 0 : -ENOMEM;
}

static int feed_sql_take_record(struct taking *taking, const struct zone_record *record)
{
	switch (record->kind) {
	case ZONE_RECORD_ZONE:
	case ZONE_RECORD_OPEN: return feed_sql_take_zone(taking, record);
	case ZONE_RECORD_LANE: return feed_sql_take_lane(taking);
	case ZONE_RECORD_NAME: return feed_sql_take_name(taking, record);
	case ZONE_RECORD_STEP:
	case ZONE_RECORD_WAIT: return feed_sql_take_step(taking, record);
	case ZONE_RECORD_RUN: return feed_sql_take_run(taking, record);
	case ZONE_RECORD_END:
		taking->ended = true;
		taking->feed->model.hidden += record->start;
		return 0;
	default: return -EIO;
	}
}

/* One for all reads, since samples are read again and again. */
static int64_t feed_sql_clock(struct feed *feed)
{
	int64_t clock = feed->ns_clock ? (int64_t)feed->ns_clock - 1
				       : zone_model_clock_ns(&feed->model);

	if (clock >= 0)
		feed->ns_clock = (uint32_t)clock + 1;
	return clock;
}

static void count_samples(struct zone_model *model)
{
	model->sampled = 0;
	for (size_t i = 0; i < model->lane_count; i++)
		if (model->lanes[i].kind == ZONE_MODEL_SAMPLES)
			model->sampled += model->lanes[i].count;
}

static int feed_sql_take_all(struct taking *taking)
{
	int64_t clock = feed_sql_clock(taking->feed);
	struct zone_record record;
	int rc = clock < 0 ? -ENOMEM : 0;

	taking->clock = (uint32_t)clock;
	while (!rc && !taking->ended)
		rc = feed_sql_get(taking, &record, sizeof(record))
			     ? feed_sql_take_record(taking, &record)
			     : -EIO;
	return rc;
}

/* ---- asking --------------------------------------------------------------------------------- */

int feed_sql_read(struct feed *feed, int fd, const char *path, struct kymo_error *err)
{
	struct taking taking = { .feed = feed, .fd = fd, .block = malloc(BLOCK_BYTES) };
	int rc = taking.block ? feed_sql_take_all(&taking) : -ENOMEM;

	if (!rc)
		rc = step_map_settle(&feed->map);
	if (rc)
		error_set(err, -rc,
			  rc == -ENOMEM ? "out of memory for the zones of %s"
					: "cannot read the zones of %s: the answer of the process "
					  "that reads them is cut or invalid",
			  path);
	count_samples(&feed->model);
	free(taking.block);
	free(taking.text);
	free(taking.lane_of);
	free(taking.name_of);
	return rc;
}

static int feed_sql_ask(const char *path, enum question_kind kind, bool keep, int *out_fd,
			struct kymo_error *err)
{
	struct children_ask ask = { .question = { .kind = kind,
						  .timeout_ms = TIMEOUT_MS,
						  .answer_bytes = ANSWER_BYTES },
				    .keep = keep };
	int rc;

	*out_fd = -1;
	if (strlen(path) >= sizeof(ask.question.path))
		return error_set(err, ENAMETOOLONG, "the path %s is too long", path);
	strcpy(ask.question.path, path);
	rc = children_ask(&ask, err);
	*out_fd = ask.fd;
	return rc;
}

int feed_sql_all(struct feed *feed, const char *path, struct kymo_error *err)
{
	uint32_t gen = feed->gen;
	int fd, rc = feed_sql_ask(path, QUESTION_ZONES, true, &fd, err);

	if (rc)
		return rc;
	rc = feed_sql_read(feed, fd, path, err);
	close(fd);
	/* Without a part of them, so that the next look does not add the same again. */
	if (rc) {
		feed_fini(feed);
		feed->gen = gen;
	}
	return rc;
}

int feed_sql_ask_devices(const char *path, bool live, enum feed_part part, struct kymo_error *err)
{
	static const enum question_kind kinds[] = {
		[FEED_DEVICES] = QUESTION_DEVICES,
		[FEED_QUEUES] = QUESTION_QUEUES,
		[FEED_PATH] = QUESTION_PATH,
	};
	int fd, rc = feed_sql_ask(path, kinds[part], !live, &fd, err);

	return rc ? rc : fd;
}

void feed_sql_take_devices(struct feed *feed, int fd, const char *path, enum feed_part part)
{
	struct kymo_error err;

	if (part != FEED_PATH) {
		zone_model_clear_devices(&feed->model);
		step_map_forget_waits(&feed->map);
	}
	feed_sql_read(feed, fd, path, &err);
}
