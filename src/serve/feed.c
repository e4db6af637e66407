#include "serve/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/grow.h"
#include "base/schema.h"
#include "serve/feed_sql.h"
#include "serve/feed_steps.h"
#include "store/job.h"
#include "views/verdicts/facts.h"

#define ROWS_AT_ONCE 4096
#define SAMPLES_TOLD_NS 2000000000ull /* between two times */
#define CLOCK_MOVED_NS 100000 /* times sent before may be off by this much */

/* A process, found again at the next look. */
struct feed_process {
	int32_t pid;
	uint64_t starttime;
	char host[64]; /* processes of different hosts may have the same pid */
	uint32_t clock; /* of the model */
	struct store_clock sent; /* the clock of times sent to clients */
	uint32_t *lane_of; /* local thread -> lane + 1 */
	uint32_t *name_of; /* local name -> name + 1 */
	size_t lane_count, name_count;
};

struct feed_stream {
	uint32_t process; /* of feed->processes */
	uint32_t id;
	uint64_t next_row;
};

/* ---- processes ------------------------------------------------------------------------------ */

static struct feed_process *feed_add_process(struct feed *feed, const struct store_process *process)
{
	int64_t clock;

	if (!grow_short((void **)&feed->processes, feed->process_count, sizeof(*feed->processes)))
		return NULL;
	clock = zone_model_clock(&feed->model, &process->clock);
	if (clock < 0)
		return NULL;
	feed->processes[feed->process_count] = (struct feed_process){
		.pid = process->pid,
		.starttime = process->control.starttime,
		.clock = (uint32_t)clock,
		.sent = process->clock
	};
	snprintf(feed->processes[feed->process_count].host, sizeof(feed->processes[0].host), "%s",
		 process->host ? process->host : "");
	return &feed->processes[feed->process_count++];
}

/* Whether the newest time differs between the clocks by more than CLOCK_MOVED_NS. */
static bool has_moved(const struct feed *feed, const struct store_clock *old,
		      const struct store_clock *new)
{
	double ns = (double)feed->now_ns * ((double)new->mult / (double)old->mult - 1) +
		    (double)(new->base_ns - old->base_ns);

	return old->base_ticks != new->base_ticks || ns > CLOCK_MOVED_NS || ns < -CLOCK_MOVED_NS;
}

/* Its index in feed->processes, with its clock updated; -1: out of memory. */
static int64_t find_process(struct feed *feed, const struct store_process *process)
{
	struct feed_process *found = NULL;

	for (size_t i = 0; i < feed->process_count && !found; i++)
		if (feed->processes[i].pid == process->pid &&
		    feed->processes[i].starttime == process->control.starttime &&
		    !strcmp(feed->processes[i].host, process->host ? process->host : ""))
			found = &feed->processes[i];
	if (!found)
		found = feed_add_process(feed, process);
	if (!found ||
	    !grow_zeroed((void **)&found->lane_of, &found->lane_count, process->thread_count,
			 sizeof(*found->lane_of)) ||
	    !grow_zeroed((void **)&found->name_of, &found->name_count, process->name_count,
			 sizeof(*found->name_of)))
		return -1;
	feed->gen += has_moved(feed, &found->sent, &process->clock);
	if (has_moved(feed, &found->sent, &process->clock))
		found->sent = process->clock;
	feed->model.clocks[found->clock] = process->clock;
	return found - feed->processes;
}

/* ---- threads and names ---------------------------------------------------------------------- */

/* A task is an entry of the thread table for a thread that already has one, which has not ended. */
static bool is_task(const struct recording *recording, const struct store_process *process,
		    uint32_t local)
{
	const struct store_thread *mine = &recording->threads[process->thread_of[local]];

	for (uint32_t i = 1; i < local && i < 4096; i++) {
		const struct store_thread *other = &recording->threads[process->thread_of[i]];

		if (other->tid == mine->tid && process->thread_of[i] &&
		    (other->ended_ns < 0 || other->ended_ns > mine->started_ns))
			return true;
	}
	return false;
}

/* The lane, or a negative errno. */
static int64_t feed_lane_of(struct feed *feed, struct feed_process *mine,
			    const struct recording *recording, const struct store_process *process,
			    uint32_t local)
{
	struct zone_model_lane lane = { .pid = process->pid,
					.tid = process->pid,
					.rank = process->rank,
					.clock = mine->clock };
	const struct store_thread *thread;
	int64_t at;

	memcpy(lane.host, mine->host, sizeof(lane.host));
	if (local >= mine->lane_count)
		local = 0;
	if (local < mine->lane_count && mine->lane_of[local])
		return mine->lane_of[local] - 1;
	if (local < process->thread_count && process->thread_of[local]) {
		thread = &recording->threads[process->thread_of[local]];
		lane.tid = thread->tid;
		memcpy(lane.name, thread->name, sizeof(lane.name));
		lane.kind = is_task(recording, process, local) ? ZONE_MODEL_TASK
							       : ZONE_MODEL_THREAD;
	}
	at = zone_model_lane(&feed->model, &lane);
	if (at >= 0 && local < mine->lane_count)
		mine->lane_of[local] = (uint32_t)at + 1;
	return at;
}

static int64_t feed_intern(struct feed *feed, const struct store_name *name)
{
	const char *source = schema_source_word(name->source);
	struct name_entry entry = { .name = name->text,
				    .name_bytes = (uint32_t)name->text_bytes,
				    .source = source,
				    .source_bytes = (uint32_t)strlen(source),
				    .file = name->file,
				    .file_bytes = (uint32_t)name->file_bytes,
				    .line = (int32_t)name->line };
	uint32_t number = name_table_add(&feed->model.names, &entry);

	return number == NAME_TABLE_NONE ? -ENOMEM : (int64_t)number;
}

static bool is_collection(const struct store_name *name)
{
	return name->text_bytes >= strlen(FACTS_GC) &&
	       !memcmp(name->text, FACTS_GC, strlen(FACTS_GC));
}

/* Of a zone. */
static int64_t feed_name_of(struct feed *feed, struct feed_process *mine,
			    const struct recording *recording, const struct store_process *process,
			    uint32_t local)
{
	int64_t at;

	if (local >= process->name_count || local >= mine->name_count)
		return feed_intern(feed, &recording->names[0]);
	if (mine->name_of[local])
		return mine->name_of[local] - 1;
	at = feed_intern(feed, &recording->names[process->name_of[local]]);
	feed->marked |= !is_collection(&recording->names[process->name_of[local]]);
	/* A name without text may get one later. */
	if (at >= 0 && process->name_of[local])
		mine->name_of[local] = (uint32_t)at + 1;
	return at;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The state of one look. */
struct look {
	struct feed *feed;
	const struct recording *recording;
	const struct store_process *process;
	struct feed_process *mine;
};

static void feed_remember(struct feed *feed, uint32_t lane, uint32_t row, uint32_t name,
			  const struct kymo_zone_row *zone)
{
	const struct store_clock *clock = &feed->model.clocks[feed->model.lanes[lane].clock];
	struct feed_zone *recent = &feed->recent[feed->came++ % FEED_RECENT];

	*recent = (struct feed_zone){ .lane = lane,
				      .row = row,
				      .name = name,
				      .start_ns = store_clock_ns(clock, zone->start_ticks),
				      .duration_ns = store_clock_span_ns(clock,
									 zone->duration_ticks) };
	if (recent->start_ns < feed->came_from_ns)
		feed->came_from_ns = recent->start_ns;
}

/* The lane or name found before, + 1; 0: none. It nearly always exists. */
static uint32_t feed_known(const uint32_t *map, size_t count, uint32_t local)
{
	return local < count ? map[local] : 0;
}

static int take_zone(const struct look *look, const struct kymo_zone_row *zone)
{
	struct feed *feed = look->feed;
	struct feed_process *mine = look->mine;
	int64_t lane = (int64_t)feed_known(mine->lane_of, mine->lane_count, zone->thread) - 1;
	int64_t name = (int64_t)feed_known(mine->name_of, mine->name_count, zone->name) - 1;
	uint32_t row = zone->depth < ZONE_MODEL_ROWS ? zone->depth : ZONE_MODEL_ROWS - 1;

	if (lane < 0)
		lane = feed_lane_of(feed, mine, look->recording, look->process, zone->thread);
	if (name < 0)
		name = feed_name_of(feed, mine, look->recording, look->process, zone->name);
	if (lane == -ENOSPC) {
		feed->model.hidden++;
		return 0;
	}
	if (lane < 0 || name < 0)
		return -ENOMEM;
	if (feed->filled)
		feed_remember(feed, (uint32_t)lane, row, (uint32_t)name, zone);
	return zone_model_add(&feed->model, (uint32_t)lane, row, zone->start_ticks,
			      zone->duration_ticks, (uint32_t)name);
}

static int take_chunk(const struct look *look, const struct store_stream *stream,
		      const struct store_chunk *chunk, uint64_t *next_row)
{
	struct kymo_zone_row *rows = malloc(ROWS_AT_ONCE * sizeof(*rows));
	uint64_t at = *next_row > chunk->first_row ? *next_row - chunk->first_row : 0;
	int rc = 0;

	if (!rows)
		return -ENOMEM;
	if (chunk->first_row > *next_row)
		look->feed->zones_overwritten += chunk->first_row - *next_row;
	while (at < chunk->rows && !rc) {
		uint64_t wanted = chunk->rows - at < ROWS_AT_ONCE ? chunk->rows - at : ROWS_AT_ONCE;
		uint64_t got = store_read_rows(stream, chunk, at, wanted, rows);

		for (uint64_t i = 0; i < got && !rc; i++)
			rc = take_zone(look, &rows[i]);
		at += got;
		if (!got)
			break;
	}
	if (chunk->first_row + at > *next_row)
		*next_row = chunk->first_row + at;
	free(rows);
	return rc;
}

static struct feed_stream *find_stream(struct feed *feed, uint32_t process, uint32_t id)
{
	for (size_t i = 0; i < feed->stream_count; i++)
		if (feed->streams[i].process == process && feed->streams[i].id == id)
			return &feed->streams[i];
	if (!grow_short((void **)&feed->streams, feed->stream_count, sizeof(*feed->streams)))
		return NULL;
	feed->streams[feed->stream_count] = (struct feed_stream){ .process = process, .id = id };
	return &feed->streams[feed->stream_count++];
}

/* ---- zones ---------------------------------------------------------------------------------- */

static int take_stream(struct feed *feed, const struct recording *recording,
		       const struct store_stream *stream)
{
	struct look look = { .feed = feed,
			     .recording = recording,
			     .process = &recording->processes[stream->process] };
	int64_t process = find_process(feed, look.process);
	struct feed_stream *known = process < 0 ? NULL
						: find_stream(feed, (uint32_t)process, stream->id);
	uint64_t next_row;
	int rc = 0;

	if (!known)
		return -ENOMEM;
	look.mine = &feed->processes[process];
	next_row = known->next_row;
	for (size_t i = 0; i < stream->chunk_count && !rc; i++)
		if (stream->chunks[i].first_row + stream->chunks[i].rows > next_row)
			rc = take_chunk(&look, stream, &stream->chunks[i], &next_row);
	known->next_row = next_row;
	return rc;
}

/* ---- open zones, figures -------------------------------------------------------------------- */

static uint32_t local_thread(const struct store_process *process, uint32_t thread)
{
	for (uint32_t i = 1; i < process->thread_count; i++)
		if (process->thread_of[i] == thread)
			return i;
	return 0;
}

static int feed_take_open(struct feed *feed, const struct recording *recording,
			  const struct store_stream *stream)
{
	const struct store_process *process = &recording->processes[stream->process];
	int64_t mine = stream->open_count ? find_process(feed, process) : 0;

	if (mine < 0)
		return -ENOMEM;
	for (size_t i = 0; i < stream->open_count; i++) {
		const struct store_open_zone *zone = &stream->open_zones[i];
		int64_t lane = feed_lane_of(feed, &feed->processes[mine], recording, process,
					    local_thread(process, zone->thread));
		int64_t name = feed_intern(feed, &recording->names[zone->name]);

		if (lane < 0 || name < 0)
			continue;
		if (!grow_short((void **)&feed->open, feed->open_count, sizeof(*feed->open)))
			return -ENOMEM;
		feed->open[feed->open_count++] = (struct feed_open){
			.lane = (uint32_t)lane,
			.row = zone->depth < ZONE_MODEL_ROWS ? zone->depth : ZONE_MODEL_ROWS - 1,
			.name = (uint32_t)name,
			.start_ns = zone->start_ns
		};
	}
	return 0;
}

static void take_figures(struct feed *feed, const struct recording *recording)
{
	struct job_ranks ranks;

	feed->rows = (struct feed_rows){ 0 };
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		feed->rows.emitted += stream->emitted;
		feed->rows.kept += stream->kept;
		feed->rows.overwritten += stream->overwritten;
		feed->rows.dropped += stream->dropped_total;
	}
	job_ranks(recording, &ranks);
	feed->steps = ranks.steps;
	feed->rank = ranks.rank;
	feed->ranks = ranks.ranks;
	feed->live = recording->live;
	feed->now_ns = recording->duration_ns;
	now_look(recording, &feed->now);
	if (!feed->command && recording->command)
		feed->command = strdup(recording->command);
}

static uint64_t device_rows(const struct recording *recording)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "device.ops") ||
		    !strcmp(recording->streams[i].table, "dist.collectives"))
			rows += recording->streams[i].emitted;
	return rows;
}

static uint64_t sample_rows(const struct recording *recording)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "python.samples") ||
		    !strcmp(recording->streams[i].table, "native.samples"))
			rows += recording->streams[i].emitted;
	return rows;
}

/* A program that marked nothing has a timeline of its stack samples. New ones lengthen zones of any
   start, so all that clients have is old: they ask again, and the samples are read. */
static void look_at_samples(struct feed *feed, uint64_t rows)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (feed->marked)
		return;
	feed->device_rows += rows;
	if (!feed->filled || rows == feed->sample_rows ||
	    now_ns - feed->samples_told_at_ns < SAMPLES_TOLD_NS)
		return;
	feed->sample_rows = rows;
	feed->samples_told_at_ns = now_ns;
	feed->came_from_ns = 0;
	feed->recent[feed->came++ % FEED_RECENT] = (struct feed_zone){ .lane = 0 };
}

/* ---- looking -------------------------------------------------------------------------------- */

static bool has_steps(const struct recording *recording, const struct store_stream *stream)
{
	return !stream->without_file && !strcmp(stream->table, "trace.steps") &&
	       stream->row_bytes == sizeof(struct schema_step_row) &&
	       recording->processes[stream->process].rank >= 0;
}

/* Where the last look ended in each stream is kept beside that of its zones. */
static int feed_take_steps(struct feed *feed, const struct recording *recording)
{
	struct feed_steps *list = calloc(recording->stream_count + 1, sizeof(*list));
	size_t count = 0;
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < recording->stream_count && !rc; i++) {
		const struct store_stream *stream = &recording->streams[i];
		int64_t process;
		const struct feed_stream *known;

		if (!has_steps(recording, stream))
			continue;
		process = find_process(feed, &recording->processes[stream->process]);
		known = process < 0 ? NULL : find_stream(feed, (uint32_t)process, stream->id);
		rc = known ? 0 : -ENOMEM;
		if (known)
			list[count++] = (struct feed_steps){
				.stream = stream,
				.process = &recording->processes[stream->process],
				.number = (size_t)(known - feed->streams),
				.next_row = known->next_row
			};
	}
	if (!rc)
		rc = feed_steps_read(&feed->map, list, count);
	for (size_t i = 0; i < count && !rc; i++)
		feed->streams[list[i].number].next_row = list[i].next_row;
	free(list);
	return rc;
}

static int take_recording(struct feed *feed, const struct recording *recording)
{
	int rc = feed_take_steps(feed, recording);

	feed->open_count = 0;
	for (size_t i = 0; i < recording->stream_count && !rc; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (stream->without_file || strcmp(stream->table, "trace.zones") ||
		    stream->row_bytes != sizeof(struct kymo_zone_row))
			continue;
		rc = take_stream(feed, recording, stream);
		if (!rc)
			rc = feed_take_open(feed, recording, stream);
	}
	take_figures(feed, recording);
	return rc ? rc : step_map_settle(&feed->map);
}

static int look_at_store(struct feed *feed, const char *path, struct kymo_error *err)
{
	struct recording *recording = NULL;
	int rc = store_open(path, &recording, err);

	if (rc)
		return rc;
	rc = take_recording(feed, recording);
	if (rc)
		rc = error_set(err, -rc, "out of memory for the zones of %s", path);
	feed->device_rows = device_rows(recording);
	look_at_samples(feed, sample_rows(recording));
	store_close(recording);
	return rc;
}

int feed_look(struct feed *feed, const char *path, struct kymo_error *err)
{
	enum store_kind kind = store_kind(path, err);
	int rc;

	feed->came = 0;
	feed->came_from_ns = INT64_MAX;
	feed->gen = feed->gen ? feed->gen : 1;
	feed->model.names.most = FEED_NAMES_MOST;
	if (kind == STORE_NONE)
		return -ENOENT;
	if (store_kind_is_sql(kind) && feed->filled)
		return 0;
	rc = store_kind_is_sql(kind) ? feed_sql_all(feed, path, err)
				     : look_at_store(feed, path, err);
	if (feed->model.count > FEED_ZONES_MOST) {
		zone_model_forget(&feed->model);
		feed->gen++;
	}
	if (!rc) {
		feed->filled = true;
		feed->end_ns = zone_model_end_ns(&feed->model);
	}
	return rc;
}

bool feed_devices_due(const struct feed *feed)
{
	return feed->filled && feed->device_rows != feed->device_rows_read;
}

int feed_devices_ask(const char *path, bool live, enum feed_part part, struct kymo_error *err)
{
	return feed_sql_ask_devices(path, live, part, err);
}

void feed_devices_take(struct feed *feed, int fd, const char *path, enum feed_part part,
		       uint64_t rows)
{
	/* Emptied meanwhile, or an error: not asked again until there are more rows. */
	if (feed->filled && part != FEED_QUEUES)
		feed->device_rows_read = rows;
	if (feed->filled && fd >= 0) {
		feed_sql_take_devices(feed, fd, path, part);
		feed->end_ns = zone_model_end_ns(&feed->model);
	}
	if (fd >= 0)
		close(fd);
}

void feed_fini(struct feed *feed)
{
	for (size_t i = 0; i < feed->process_count; i++) {
		free(feed->processes[i].lane_of);
		free(feed->processes[i].name_of);
	}
	free(feed->processes);
	free(feed->streams);
	free(feed->open);
	free(feed->command);
	zone_model_fini(&feed->model);
	step_map_fini(&feed->map);
	*feed = (struct feed){ 0 };
}
