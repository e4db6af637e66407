/* Zones by SQL, as records: those of a packed file, and the operations of devices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "serve/children/child.h"
#include "serve/children/zone_record.h"
#include "serve/feed.h"
#include "serve_sql.h"
#include "views/query/rows.h"
#include "views/timeline/sampled_zones.h"
#include "views/timeline/zone_gather.h"
#include "views/timeline/zone_rows.h"

#define ZONES_SORTED 200000

static const char streams_sql[] =
	"SELECT sum(emitted), sum(kept), sum(overwritten), sum(dropped) FROM kymo.streams";

struct child_zones {
	FILE *out;
	struct zone_model model; /* lanes and names; no zones */
	struct zone_rows reader;
	size_t lanes, names; /* that are written */
	uint64_t zones;
	bool open;
	struct zone_record_run run;
	char *command;
};

static int child_zones_put(struct child_zones *to, const void *bytes, size_t count)
{
	errno = 0;
	if (!count || fwrite(bytes, count, 1, to->out) == 1)
		return 0;
	return errno ? -errno : -EIO;
}

static int child_zones_pad(struct child_zones *to, uint64_t bytes)
{
	static const char zeros[8];

	return child_zones_put(to, zeros, ZONE_RECORD_PADDED(bytes) - bytes);
}

static int child_zones_put_lane(struct child_zones *to, const struct zone_model_lane *lane)
{
	struct zone_record record = { .kind = ZONE_RECORD_LANE };
	struct zone_record_lane about = {
		.pid = lane->pid, .tid = lane->tid, .rank = lane->rank, .kind = lane->kind
	};
	int rc = child_zones_put(to, &record, sizeof(record));

	memcpy(about.name, lane->name, sizeof(about.name));
	memcpy(about.host, lane->host, sizeof(about.host));
	return rc ? rc : child_zones_put(to, &about, sizeof(about));
}

static int child_zones_put_name(struct child_zones *to, const struct name_entry *name)
{
	struct zone_record record = { .kind = ZONE_RECORD_NAME,
				      .name = (uint32_t)name->line,
				      .start = name->name_bytes,
				      .duration = ZONE_RECORD_TEXTS(name->source_bytes,
								    name->file_bytes) };
	int rc = child_zones_put(to, &record, sizeof(record));

	if (!rc)
		rc = child_zones_put(to, name->name, name->name_bytes);
	if (!rc)
		rc = child_zones_put(to, name->source, name->source_bytes);
	if (!rc)
		rc = child_zones_put(to, name->file, name->file_bytes);
	return rc ? rc
		  : child_zones_pad(to, (uint64_t)name->name_bytes + name->source_bytes +
						name->file_bytes);
}

static int child_zones_row(const struct rows *rows, void *context)
{
	struct child_zones *to = context;
	struct zone_record record = { .kind = to->open ? ZONE_RECORD_OPEN : ZONE_RECORD_ZONE };
	struct zone_rows_zone zone;
	int rc = zone_rows_read(&to->reader, rows, &zone);

	if (rc <= 0)
		return rc;
	/* A small file may hold billions of equal rows. */
	if (to->zones++ >= FEED_ZONES_MOST) {
		to->model.hidden++;
		return 0;
	}
	for (rc = 0; !rc && to->lanes < to->model.lane_count; to->lanes++)
		rc = child_zones_put_lane(to, &to->model.lanes[to->lanes]);
	for (; !rc && to->names < to->model.names.count; to->names++)
		rc = child_zones_put_name(to, &to->model.names.list[to->names]);
	record.lane = zone.lane;
	record.row = (uint8_t)zone.row;
	record.name = zone.name;
	record.start = (uint64_t)zone.start_ns;
	record.duration = (uint64_t)zone.duration_ns;
	return rc ? rc : child_zones_put(to, &record, sizeof(record));
}

static int child_zones_put_step(struct child_zones *to, const struct rows *rows,
				enum zone_record_kind kind)
{
	int64_t step = (int64_t)rows_number(rows, 1, 0);
	struct zone_record record = { .kind = (uint8_t)kind,
				      .name = (uint32_t)rows_number(rows, 0, 0),
				      .start = (uint64_t)rows_number(rows, 2, 0),
				      .duration = (uint64_t)rows_number(rows, 3, 0) };
	int rc = child_zones_put(to, &record, sizeof(record));

	return rc ? rc : child_zones_put(to, &step, sizeof(step));
}

static int child_zones_step_row(const struct rows *rows, void *context)
{
	return child_zones_put_step(context, rows, ZONE_RECORD_STEP);
}

static int child_zones_wait_row(const struct rows *rows, void *context)
{
	return child_zones_put_step(context, rows, ZONE_RECORD_WAIT);
}

/* In lanes of their own: the server reads them again when there are more. */
static int child_zones_put_samples(struct tables *tables, struct child_zones *to,
				   struct kymo_error *err)
{
	int rc = 0;

	to->reader.samples = true;
	if (sampled_zones_wanted(tables))
		rc = rows_each(tables, sampled_zones_sql(), child_zones_row, to, err);
	to->reader.samples = false;
	return rc;
}

/* What no thread made: operations of devices, collectives, and the waits in them; stack samples. */
static int child_zones_devices(struct tables *tables, struct child_zones *to,
			       struct kymo_error *err)
{
	int rc = rows_each(tables, sql_feed_ops, child_zones_row, to, err);

	if (!rc)
		rc = rows_each(tables, sql_feed_collectives, child_zones_row, to, err);
	if (!rc)
		rc = rows_each(tables, sql_feed_waits, child_zones_wait_row, to, err);
	if (!rc)
		rc = child_zones_put_samples(tables, to, err);
	return rc;
}

static int child_zones_path(struct tables *tables, struct child_zones *to, struct kymo_error *err)
{
	return zone_gather_has_critical(tables)
		       ? rows_each(tables, sql_feed_critical, child_zones_row, to, err)
		       : 0;
}

static int child_zones_run_row(const struct rows *rows, void *context)
{
	struct child_zones *to = context;

	free(to->command);
	to->command = rows_take_text(rows, 0);
	to->run.duration_ns = (int64_t)rows_number(rows, 1, 0);
	to->run.rank = (int32_t)rows_number(rows, 2, -1);
	to->run.ranks = (int32_t)rows_number(rows, 3, -1);
	to->run.steps = (int64_t)rows_number(rows, 4, 0);
	return 0;
}

static int child_zones_streams_row(const struct rows *rows, void *context)
{
	struct child_zones *to = context;

	to->run.emitted = rows_count(rows, 0);
	to->run.kept = rows_count(rows, 1);
	to->run.overwritten = rows_count(rows, 2);
	to->run.dropped = rows_count(rows, 3);
	return 0;
}

static int child_zones_put_run(struct child_zones *to)
{
	size_t bytes = to->command ? strlen(to->command) : 0;
	struct zone_record record = { .kind = ZONE_RECORD_RUN, .start = bytes };
	int rc = child_zones_put(to, &record, sizeof(record));

	if (!rc)
		rc = child_zones_put(to, &to->run, sizeof(to->run));
	if (!rc)
		rc = child_zones_put(to, to->command, bytes);
	return rc ? rc : child_zones_pad(to, bytes);
}

static int child_zones_begin(struct child_zones *to, FILE *out, struct kymo_error *err)
{
	*to = (struct child_zones){ .out = out, .model.names.most = FEED_NAMES_MOST };
	to->reader = (struct zone_rows){ .model = &to->model, .by_name = true };
	return zone_model_clock_ns(&to->model) < 0
		       ? error_set(err, ENOMEM, "out of memory for the zones")
		       : 0;
}

static int child_zones_end(struct child_zones *to, int rc, struct kymo_error *err)
{
	struct zone_record record = { .kind = ZONE_RECORD_END, .start = to->model.hidden };

	if (!rc)
		rc = child_zones_put(to, &record, sizeof(record));
	if (rc && !err->text[0])
		error_set(err, -rc, "cannot write the zones: %s", strerror(-rc));
	free(to->command);
	zone_model_fini(&to->model);
	return rc;
}

/* Sorting many zones would delay the first picture. */
static const char *zones_sql(struct tables *tables)
{
	double count = tables_number(tables, "SELECT count(*) FROM trace.zones", 0);

	return count < ZONES_SORTED ? sql_feed_zones_sorted : sql_feed_zones;
}

int child_zones(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		struct kymo_error *err)
{
	struct child_zones to;
	int rc = child_zones_begin(&to, out, err);

	(void)question;
	(void)sql;
	if (!rc)
		rc = rows_each(tables, zones_sql(tables), child_zones_row, &to, err);
	if (!rc)
		rc = rows_each(tables, sql_feed_steps, child_zones_step_row, &to, err);
	if (!rc)
		rc = child_zones_devices(tables, &to, err);
	if (!rc)
		rc = child_zones_path(tables, &to, err);
	to.open = true;
	if (!rc)
		rc = rows_each(tables, sql_feed_open, child_zones_row, &to, err);
	if (!rc)
		rc = rows_each(tables, sql_feed_run, child_zones_run_row, &to, err);
	if (!rc)
		rc = rows_each(tables, streams_sql, child_zones_streams_row, &to, err);
	if (!rc)
		rc = child_zones_put_run(&to);
	return child_zones_end(&to, rc, err);
}

static int child_zones_parts(struct tables *tables, bool queues, bool path, FILE *out,
			     struct kymo_error *err)
{
	struct child_zones to;
	int rc = child_zones_begin(&to, out, err);

	if (!rc && queues)
		rc = child_zones_devices(tables, &to, err);
	if (!rc && path)
		rc = child_zones_path(tables, &to, err);
	return child_zones_end(&to, rc, err);
}

int child_devices(struct tables *tables, const struct question *question, const char *sql,
		  FILE *out, struct kymo_error *err)
{
	(void)question;
	(void)sql;
	return child_zones_parts(tables, true, true, out, err);
}

int child_queues(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		 struct kymo_error *err)
{
	(void)question;
	(void)sql;
	return child_zones_parts(tables, true, false, out, err);
}

int child_path(struct tables *tables, const struct question *question, const char *sql, FILE *out,
	       struct kymo_error *err)
{
	(void)question;
	(void)sql;
	return child_zones_parts(tables, false, true, out, err);
}
