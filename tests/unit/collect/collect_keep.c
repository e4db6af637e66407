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
#include "collect/move/archive_inside.h"

#define MINUTE 60000000000ull
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define MEGABYTE (1ull << 20)

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
