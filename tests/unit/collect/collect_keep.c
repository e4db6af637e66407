/* kymo run --keep RULES: what of each table stays on disk, over a month. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/keep_rules.h"
#include "base/schema.h"
#include "collect/move/archive_inside.h"
#include "collect/move/thin.h"

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define MEGABYTE (1ull << 20)
#define BEYOND (1ull << 33) /* the number of the first row */

static uint64_t lapsed_ns;

static uint64_t lapsed(void)
{
	return lapsed_ns;
}

struct place {
	char path[64];
	int disk;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/kymo-keep-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->disk = open(place->path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(place->disk, "p1-1", 0700), 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", place->path);
	close(place->disk);
	free(place);
	return system(command);
}

static void begin(struct archive *archive, const struct place *place, const char *rules,
		  uint64_t disk_bytes)
{
	const struct budget budget = { 1ull << 30, disk_bytes };

	archive_init(archive, place->disk, place->disk, &budget);
	assert_int_equal(keep_rules_parse(rules, &archive->keep, NULL), 0);
	archive->clock = lapsed;
	lapsed_ns = HOUR;
}

/* A sealed segment that has just been moved. */
static void arrive(struct archive *archive, const char *table, uint32_t stream, uint64_t sequence,
		   uint64_t bytes)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "p1-1/s%u.%llu", stream, (unsigned long long)sequence);
	fd = openat(archive->disk_fd, name, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	archive_account(archive, "p1-1", stream, sequence, bytes,
			keep_rules_find(&archive->keep, table));
}

static bool stays(const struct archive *archive, uint32_t stream, uint64_t sequence)
{
	char name[64];

	snprintf(name, sizeof(name), "p1-1/s%u.%llu", stream, (unsigned long long)sequence);
	return !faccessat(archive->disk_fd, name, F_OK, 0);
}

/* A segment of zones each minute, of samples each ten, of steps each hour. */
static void a_month_is_bounded_and_has_all_its_steps(void **state)
{
	const uint64_t minutes = 30 * DAY / MINUTE;
	struct archive archive;
	uint64_t most = 0;

	begin(&archive, *state, "zones=10m,steps=all,samples=1d", 1ull << 40);
	for (uint64_t minute = 0; minute < minutes; minute++) {
		lapsed_ns += MINUTE;
		arrive(&archive, "trace.zones", 1, minute, 2 * MEGABYTE);
		if (minute % 10 == 0)
			arrive(&archive, "python.samples", 2, minute / 10, MEGABYTE);
		if (minute % 60 == 0)
			arrive(&archive, "trace.steps", 3, minute / 60, MEGABYTE / 4);
		archive_expire(&archive);
		most = archive.disk_bytes > most ? archive.disk_bytes : most;
	}
	/* 11 of zones, 145 of samples, 720 of steps */
	assert_true(most <= (11 * 2 + 145 + 180) * MEGABYTE);
	assert_int_equal(archive.queue_count, 11 + 144 + 720);
	for (uint64_t hour = 0; hour < minutes / 60; hour++)
		assert_true(stays(&archive, 3, hour));
	assert_false(stays(&archive, 1, minutes - 12));
	assert_true(stays(&archive, 1, minutes - 11));
	assert_int_equal(archive.removed_segments, 0);
	archive_fini(&archive);
}

static void a_limit_of_size_removes_the_oldest_of_its_table(void **state)
{
	struct archive archive;

	begin(&archive, *state, "samples=10M", 1ull << 40);
	for (uint64_t i = 0; i < 20; i++) {
		arrive(&archive, "native.samples", 1, i, MEGABYTE);
		arrive(&archive, "trace.zones", 2, i, MEGABYTE);
	}
	archive_expire(&archive);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(stays(&archive, 1, i), i >= 10);
		assert_true(stays(&archive, 2, i));
	}
	assert_int_equal(archive.expired_segments, 10);
	assert_int_equal(archive.disk_bytes, 30 * MEGABYTE);
	archive_fini(&archive);
}

static void beyond_the_disk_budget_tables_that_are_kept_go_last(void **state)
{
	struct archive archive;

	begin(&archive, *state, "steps=all", 10 * MEGABYTE);
	for (uint64_t i = 0; i < 8; i++)
		arrive(&archive, "trace.steps", 1, i, MEGABYTE);
	for (uint64_t i = 0; i < 8; i++)
		arrive(&archive, "trace.zones", 2, i, MEGABYTE);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(stays(&archive, 1, i));
	assert_false(stays(&archive, 2, 5));
	assert_true(stays(&archive, 2, 6));
	for (uint64_t i = 8; i < 20; i++)
		arrive(&archive, "trace.steps", 1, i, MEGABYTE);
	assert_false(stays(&archive, 2, 7) || stays(&archive, 1, 0));
	assert_true(stays(&archive, 1, 19));
	assert_true(archive.disk_bytes <= 10 * MEGABYTE);
	archive_fini(&archive);
}

static void rules_are_read_and_wrong_ones_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"zones",
		"zones=",
		"zones=10",
		"zones=0m",
		"zones=10x",
		"=10m",
		"everything=10m",
		"zones=10m,",
		"zones=-1m",
		"zones=10m1s",
		"zones=1e9s",
		"zones=9999999s",
		"steps=all,steps=1m",
		"samples=1h:10ms,1h:1s",
		"samples=1h:1s,1w:10ms",
		"samples=1h:10",
		"samples=1h:0s",
		"samples=2G:1s",
		"samples=1h,2G:1s",
		"samples=all:1s,1w:1m",
		"samples=1m:1s,2m:2s,3m:3s,4m:4s,5m:5s",
		"1h:10ms",
		"zones=10m:1s",
		"zones=10m,1w:1s",
		"counters=1h:1s",
		"steps=1h,1w:1s",
	};
	struct keep_rules rules;
	struct kymo_error err;

	(void)state;
	assert_int_equal(
		keep_rules_parse("zones=10m,samples=1w,samples=2G,app.requests=1d,steps=all",
				 &rules, &err),
		0);
	assert_int_equal(rules.count, 4);
	assert_int_equal(rules.list[keep_rules_find(&rules, "trace.zones")].age_ns, 10 * MINUTE);
	assert_int_equal(rules.list[keep_rules_find(&rules, "native.samples")].bytes, 2ull << 30);
	assert_int_equal(rules.list[keep_rules_find(&rules, "python.samples")].age_ns, 7 * DAY);
	assert_true(rules.list[keep_rules_find(&rules, "trace.steps")].all);
	assert_int_equal(keep_rules_find(&rules, "python.frames"), -1);
	assert_int_equal(keep_rules_parse("metrics=1h", &rules, &err), 0);
	assert_int_equal(keep_rules_find(&rules, "host.cpu"), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(keep_rules_parse(wrong[i], &rules, &err) < 0);
	assert_int_equal(rules.count, 1);
}

static void levels_are_read(void **state)
{
	const struct keep_rule *rule;
	struct keep_rules rules;

	(void)state;
	assert_int_equal(keep_rules_parse("zones=10m,steps=all,samples=1h:10ms,1w:1s,all:1m,"
					  "counters=2h,1d:10s,metrics=1h,all:1m",
					  &rules, NULL),
			 0);
	assert_int_equal(rules.count, 5);
	rule = &rules.list[keep_rules_find(&rules, "native.samples")];
	assert_int_equal(rule->level_count, 3);
	assert_true(rule->levels[0].age_ns == HOUR && rule->levels[0].period_ns == 10000000);
	assert_true(rule->levels[1].age_ns == 7 * DAY && rule->levels[1].period_ns == SECOND);
	assert_true(rule->levels[2].age_ns == KEEP_FOREVER && rule->levels[2].period_ns == MINUTE);
	assert_false(rule->all || rule->age_ns);
	assert_int_equal(keep_rules_first_period(&rules, "python.samples"), 10000000);
	assert_int_equal(keep_rules_first_period(&rules, "host.process"), 0);
	rule = &rules.list[keep_rules_find(&rules, "trace.counters")];
	assert_true(rule->level_count == 2 && rule->levels[0].age_ns == 2 * HOUR &&
		    !rule->levels[0].period_ns && rule->levels[1].period_ns == 10 * SECOND);
}

/* ---- thinning -------------------------------------------------------------------------------- */

/* Each table that is thinned has the columns that its plan names. */
static void make_head(struct kymo_stream_head *head, enum schema_id id, uint32_t stream)
{
	const struct schema_table *table = schema_get(id);

	memset(head, 0, sizeof(*head));
	snprintf(head->table, sizeof(head->table), "%s", table->name);
	head->id = stream;
	head->row_bytes = ((uint32_t)table->row_bytes + 7u) & ~7u;
	head->column_count = (uint32_t)table->column_count;
	for (size_t i = 0; i < table->column_count; i++) {
		const struct kymo_column *from = &table->columns[i];
		struct kymo_column_desc *to = &head->columns[i];

		snprintf(to->name, sizeof(to->name), "%s", from->name);
		to->type = from->type;
		to->offset = (uint32_t)from->offset;
		to->bytes = (uint32_t)from->bytes;
	}
}

static void every_plan_fits_its_table(void **state)
{
	struct kymo_stream_head head;
	struct thin_plan plan;
	unsigned plans = 0;

	(void)state;
	for (int id = 0; id < SCHEMA_COUNT; id++) {
		if (!schema_get((enum schema_id)id))
			continue;
		make_head(&head, (enum schema_id)id, 1);
		assert_int_equal(thin_plan_make(&plan, &head), thin_knows(head.table));
		plans += thin_knows(head.table);
	}
	assert_int_equal(plans, 13);
	/* A header that is not to be trusted. */
	make_head(&head, SCHEMA_SAMPLES, 1);
	head.columns[0].offset = head.row_bytes - 4;
	assert_false(thin_plan_make(&plan, &head));
	make_head(&head, SCHEMA_HOST_NETWORK, 1);
	for (uint32_t i = 0; i < head.column_count; i++)
		head.columns[i].bytes = head.columns[i].type == KYMO_TEXT ? 4000 : 0;
	assert_false(thin_plan_make(&plan, &head));
}

/* A tick is a nanosecond here. */
static void metrics_become_means_and_counts_those_of_the_end(void **state)
{
	struct schema_host_process_row rows[120], out[120];
	struct kymo_stream_head head;
	struct thin_plan plan;

	(void)state;
	memset(rows, 0, sizeof(rows));
	for (uint64_t i = 0; i < 120; i++) {
		rows[i].ts_ticks = 10 * MINUTE + i * SECOND;
		rows[i].pid = 7;
		rows[i].rss_bytes = i < 60 ? 100 + i : 1000; /* mean 129.5, then 1000 */
		rows[i].peak_bytes = i;
		rows[i].cpu_ns = i * SECOND / 4;
		rows[i].cpu_pct =
			50; /* rows of idle seconds may be missing: the counts are right */
	}
	make_head(&head, SCHEMA_HOST_PROCESS, 1);
	assert_true(thin_plan_make(&plan, &head));
	assert_int_equal(thin_rows(&plan, (void *)rows, 120, MINUTE, 1, (void *)out), 2);
	assert_int_equal(out[0].rss_bytes, 130);
	assert_int_equal(out[0].peak_bytes, 59);
	assert_true(out[0].ts_ticks == 10 * MINUTE + 59 * SECOND && out[0].cpu_pct == 50);
	assert_int_equal(out[1].rss_bytes, 1000);
	assert_true(out[1].cpu_pct > 24.99 && out[1].cpu_pct < 25.01);
}

static void figures_that_are_unknown_are_no_part_of_a_mean(void **state)
{
	struct schema_host_gpu_row rows[3] = {
		{ .ts_ticks = MINUTE, .util_pct = -1, .power_w = -1, .used_bytes = 10 },
		{ .ts_ticks = MINUTE + 1, .util_pct = 40, .power_w = -1, .used_bytes = 20 },
		{ .ts_ticks = MINUTE + 2, .util_pct = -1, .power_w = -1, .used_bytes = 30 },
	}, out[3];
	struct kymo_stream_head head;
	struct thin_plan plan;

	(void)state;
	make_head(&head, SCHEMA_HOST_GPU, 1);
	assert_true(thin_plan_make(&plan, &head));
	assert_int_equal(thin_rows(&plan, (void *)rows, 3, MINUTE, 1, (void *)out), 1);
	assert_true(out[0].util_pct == 40 && out[0].power_w == -1 && out[0].used_bytes == 20);
}

/* 70 % of the time in stack 1, 30 % in stack 2. */
static void samples_keep_their_time_and_their_shares(void **state)
{
	const size_t count = 600000; /* 6,000 s of 10 ms */
	struct schema_sample_row *rows = calloc(count, sizeof(*rows));
	struct schema_sample_row *out = calloc(count, sizeof(*out));
	uint64_t of_stack[3] = { 0 };
	struct kymo_stream_head head;
	struct thin_plan plan;
	size_t kept;

	(void)state;
	for (size_t i = 0; i < count; i++)
		rows[i] = (struct schema_sample_row){ .ts_ticks = HOUR + i * SECOND / 100,
						      .stack = i % 10 < 7 ? 1 : 2,
						      .pid = 7,
						      .tid = 7,
						      .weight_ns = SECOND / 100 };
	make_head(&head, SCHEMA_SAMPLES, 1);
	assert_true(thin_plan_make(&plan, &head));
	kept = thin_rows(&plan, (void *)rows, count, SECOND, 1, (void *)out);
	assert_int_equal(kept, 6000);
	for (size_t i = 0; i < kept; i++) {
		assert_int_equal(out[i].weight_ns, SECOND);
		of_stack[out[i].stack] += out[i].weight_ns;
	}
	assert_true(of_stack[1] + of_stack[2] == 6000 * SECOND);
	assert_true(of_stack[1] > 4000 * SECOND && of_stack[1] < 4400 * SECOND);
	free(rows);
	free(out);
}

/* A segment of one row for each of `rows` seconds, of two threads. */
static void write_samples(const struct place *place, uint64_t sequence, uint64_t seconds)
{
	struct kymo_segment_head head = { .stream_id = 2,
					  .row_bytes = sizeof(struct schema_sample_row),
					  .sequence = sequence,
					  .first_row = BEYOND + sequence * seconds,
					  .rows = seconds };
	char name[64];
	int fd;

	memcpy(head.file.magic, KYMO_MAGIC_SEGMENT, sizeof(head.file.magic));
	snprintf(name, sizeof(name), "p1-1/s2.%llu", (unsigned long long)sequence);
	fd = openat(place->disk, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	for (uint64_t i = 0; i < seconds; i++) {
		struct schema_sample_row row = { .ts_ticks = lapsed_ns - (seconds - i) * SECOND,
						 .stack = 1 + (uint32_t)(i % 3),
						 .pid = 7,
						 .tid = 7 + (int32_t)(i % 2),
						 .weight_ns = SECOND };

		assert_int_equal(write(fd, &row, sizeof(row)), sizeof(row));
	}
	close(fd);
}

static void write_head(const struct place *place)
{
	struct kymo_stream_head head;
	int fd = openat(place->disk, "p1-1/s2.head", O_WRONLY | O_CREAT, 0600);

	make_head(&head, SCHEMA_SAMPLES, 2);
	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	close(fd);
}

/* Rows and weight of all segments, as a reader takes them: rows of two never have one number. */
static void add_up(const struct place *place, uint64_t segments, uint64_t *out_rows,
		   uint64_t *out_weight, uint64_t *out_files)
{
	uint64_t next = 0;

	*out_rows = *out_weight = *out_files = 0;
	for (uint64_t i = 0; i < segments; i++) {
		struct kymo_segment_head head;
		struct schema_sample_row row;
		char name[64];
		int fd;

		snprintf(name, sizeof(name), "p1-1/s2.%llu", (unsigned long long)i);
		fd = openat(place->disk, name, O_RDONLY);
		if (fd < 0)
			continue;
		++*out_files;
		assert_int_equal(read(fd, &head, sizeof(head)), sizeof(head));
		assert_true(head.sequence == i && head.first_row >= next);
		next = head.first_row + head.rows;
		for (uint64_t k = 0; k < head.rows; k++) {
			assert_int_equal(read(fd, &row, sizeof(row)), sizeof(row));
			*out_weight += row.weight_ns;
			++*out_rows;
		}
		close(fd);
	}
}

/* 2,592,000 rows, a segment of each ten minutes; their numbers are beyond 2^32. */
static void a_month_of_samples_is_thinned_and_its_time_is_exact(void **state)
{
	const uint64_t segments = 30 * DAY / (10 * MINUTE);
	uint64_t rows, weight, files, most_bytes = 0;
	struct archive archive;

	begin(&archive, *state, "samples=1h:1s,1w:10s,all:1m", 1ull << 40);
	archive.ns_per_tick = 1;
	write_head(*state);
	for (uint64_t i = 0; i < segments; i++) {
		lapsed_ns += 10 * MINUTE;
		write_samples(*state, i, 600);
		archive_account(&archive, "p1-1", 2, i, 64 + 600 * sizeof(struct schema_sample_row),
				keep_rules_find(&archive.keep, "python.samples"));
		archive_expire(&archive);
		most_bytes = archive.disk_bytes > most_bytes ? archive.disk_bytes : most_bytes;
	}
	add_up(*state, segments, &rows, &weight, &files);
	assert_true(weight == segments * 600 * SECOND);
	assert_true(archive.thinned_rows + rows == segments * 600);
	/* Of two threads: an hour and a batch of seconds, a week of 10 s, the rest of minutes. Each
	   batch may cut a period. */
	assert_true(rows > 2 * 23 * 24 * 60 &&
		    rows < 2 * (2 * 3600 + 9 * 24 * 360 + 23 * 24 * 60) * 11 / 10);
	assert_true(files < 1000);
	assert_true(most_bytes < 300000 * sizeof(struct schema_sample_row));
	assert_int_equal(archive.queue_count, files);
	assert_int_equal(archive.expired_segments + archive.removed_segments, 0);
	archive_fini(&archive);
}

static void what_cannot_be_thinned_is_removed_and_a_full_disk_leaves_all(void **state)
{
	uint64_t rows, weight, files, bytes = 64 + 600 * sizeof(struct schema_sample_row);
	const struct place *place = *state;
	struct archive archive;

	begin(&archive, place, "samples=10m,all:1m", 1ull << 40);
	archive.ns_per_tick = 1;
	for (uint64_t i = 0; i < 4; i++) {
		lapsed_ns += 20 * MINUTE;
		write_samples(place, i, 600);
		archive_account(&archive, "p1-1", 2, i, bytes, 0);
	}
	/* A folder in the place of the temporary file: it cannot be written. */
	write_head(place);
	assert_int_equal(mkdirat(place->disk, "p1-1/.s2.0.part", 0700), 0);
	assert_int_equal(mkdirat(place->disk, "p1-1/.s2.0.part/x", 0700), 0);
	archive_expire(&archive);
	add_up(place, 4, &rows, &weight, &files);
	assert_true(rows == 2400 && files == 4 && archive.queue_count == 4);
	assert_int_equal(unlinkat(place->disk, "p1-1/.s2.0.part/x", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(place->disk, "p1-1/.s2.0.part", AT_REMOVEDIR), 0);
	/* Without the description of the stream. */
	assert_int_equal(unlinkat(place->disk, "p1-1/s2.head", 0), 0);
	lapsed_ns += MINUTE;
	archive_expire(&archive);
	add_up(place, 4, &rows, &weight, &files);
	assert_true(rows == 600 && files == 1 && archive.expired_segments == 3);
	archive_fini(&archive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_month_is_bounded_and_has_all_its_steps, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_limit_of_size_removes_the_oldest_of_its_table,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(beyond_the_disk_budget_tables_that_are_kept_go_last,
						set_up, tear_down),
		cmocka_unit_test(rules_are_read_and_wrong_ones_are_refused),
		cmocka_unit_test(levels_are_read),
		cmocka_unit_test(every_plan_fits_its_table),
		cmocka_unit_test(metrics_become_means_and_counts_those_of_the_end),
		cmocka_unit_test(figures_that_are_unknown_are_no_part_of_a_mean),
		cmocka_unit_test(samples_keep_their_time_and_their_shares),
		cmocka_unit_test_setup_teardown(a_month_of_samples_is_thinned_and_its_time_is_exact,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_thinned_is_removed_and_a_full_disk_leaves_all, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
