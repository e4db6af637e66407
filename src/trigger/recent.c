#include "trigger/recent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "base/clock.h"
#include "base/files/run_files.h"
#include "record/snapshot.h"

#define NOWHERE UINT32_MAX

struct recent {
	uint64_t since_ticks;
	/* offsets in the rows of the stream that is being written */
	uint32_t start, duration;
};

static uint32_t recent_offset(const struct kymo_stream_head *head, uint32_t type)
{
	for (uint32_t i = 0; i < head->column_count && i < KYMO_COLUMNS_MAX; i++) {
		const struct kymo_column_desc *column = &head->columns[i];

		if (column->type == type && column->bytes == 8 && head->row_bytes >= 8 &&
		    column->offset <= head->row_bytes - 8)
			return column->offset;
	}
	return NOWHERE;
}

static bool recent_stream(void *context, const struct kymo_stream_head *head)
{
	struct recent *recent = context;
	bool whole = !strncmp(head->table, "kymo.", 5);

	recent->start = whole ? NOWHERE : recent_offset(head, KYMO_TIME);
	recent->duration = recent_offset(head, KYMO_DURATION);
	return true;
}

static uint64_t recent_word(const void *row, uint32_t offset)
{
	uint64_t value = 0;

	if (offset != NOWHERE)
		memcpy(&value, (const char *)row + offset, sizeof(value));
	return value;
}

static bool recent_row(void *context, const void *row, bool writes)
{
	const struct recent *recent = context;
	uint64_t start = recent_word(row, recent->start);

	(void)writes;
	return recent->start == NOWHERE || start >= recent->since_ticks ||
	       recent_word(row, recent->duration) >= recent->since_ticks - start;
}

/* Rows are written when what they describe has ended, so the last one of a segment ended last. */
static bool recent_segment(void *context, const void *last_row)
{
	return recent_row(context, last_row, false);
}

static bool recent_misses(void *context, const void *oldest_row)
{
	const struct recent *recent = context;

	return recent->start == NOWHERE ||
	       recent_word(oldest_row, recent->start) >= recent->since_ticks;
}

/* The begin of the recording, and now by its clocks. */
static int recent_clocks(const char *directory, struct kymo_clock_pair *out_epoch,
			 struct kymo_clock_pair *out_now, struct kymo_error *err)
{
	struct kymo_run_file run = { 0 };
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : run_files_run_of(fd, &run);

	if (fd >= 0)
		close(fd);
	if (rc)
		return error_set(err, -rc, "cannot read %s/run: %s", directory, strerror(-rc));
	clock_init();
	clock_take_pair(out_now);
	if (run.clock_kind == KYMO_CLOCK_MONOTONIC)
		out_now->ticks = out_now->monotonic_ns;
	if (out_now->ticks < run.epoch.ticks || out_now->monotonic_ns <= run.epoch.monotonic_ns)
		return error_set(err, EINVAL,
				 "%s was not recorded since the last boot of this machine",
				 directory);
	*out_epoch = run.epoch;
	return 0;
}

/* The moment ago_ns before now, by the rate between the recording's begin and now; at the earliest
   its begin. */
static struct kymo_clock_pair moment_ago(const struct kymo_clock_pair *epoch,
					 const struct kymo_clock_pair *now, uint64_t ago_ns)
{
	struct kymo_clock_pair moment = *epoch;
	uint64_t ticks = now->ticks - epoch->ticks, ns = now->monotonic_ns - epoch->monotonic_ns;

	if (ago_ns >= ns)
		return moment;
	moment.ticks = now->ticks - (uint64_t)((unsigned __int128)ticks * ago_ns / ns);
	moment.monotonic_ns = now->monotonic_ns - ago_ns;
	moment.realtime_ns = now->realtime_ns - ago_ns;
	return moment;
}

static int recent_write_from(const char *directory, const struct kymo_clock_pair *since,
			     const struct kymo_clock_pair *epoch, const char *file,
			     struct kymo_error *err)
{
	struct recent recent = { .since_ticks = since->ticks };
	const struct kymo__choice choice = { .stream = recent_stream,
					     .row = recent_row,
					     .segment = recent_segment,
					     .misses = recent_misses,
					     .context = &recent,
					     .keeps_open = true,
					     .epoch = epoch };

	return kymo__snapshot_write_chosen(directory, &choice, file, err);
}

int recent_write(const char *directory, uint64_t last_ns, const char *file, struct kymo_error *err)
{
	struct kymo_clock_pair epoch = { 0 }, now = { 0 }, since;
	int rc = recent_clocks(directory, &epoch, &now, err);

	if (rc)
		return rc;
	since = moment_ago(&epoch, &now, last_ns);
	return recent_write_from(directory, &since, NULL, file, err);
}

int recent_write_since(const char *directory, uint64_t since_ns, const char *file,
		       struct kymo_error *err)
{
	struct kymo_clock_pair epoch = { 0 }, now = { 0 }, since;
	int rc = recent_clocks(directory, &epoch, &now, err);

	if (rc)
		return rc;
	if (since_ns > now.monotonic_ns)
		return error_set(err, EINVAL, "the moment to write from is in the future");
	since = moment_ago(&epoch, &now, now.monotonic_ns - since_ns);
	return recent_write_from(directory, &since, &since, file, err);
}
