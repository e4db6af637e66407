/* Records of zones from a child are untrusted: whole ones are read, everything else is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "serve/children/zone_record.h"
#include "serve/feed_sql.h"

static void put(struct buf *to, struct zone_record record)
{
	buf_add(to, &record, sizeof(record));
}

static void put_lane(struct buf *to, uint32_t kind)
{
	struct zone_record_lane lane = { .pid = 1, .tid = 1, .rank = -1, .kind = kind };

	memset(lane.name, 'x', sizeof(lane.name)); /* without a NUL */
	put(to, (struct zone_record){ .kind = ZONE_RECORD_LANE });
	buf_add(to, &lane, sizeof(lane));
}

static void put_name(struct buf *to)
{
	put(to, (struct zone_record){ .kind = ZONE_RECORD_NAME,
				      .name = 7,
				      .start = 4,
				      .duration = ZONE_RECORD_TEXTS(1, 3) });
	buf_add(to, "workcf.c", 8);
}

static struct zone_record zone(uint16_t lane, uint32_t name, uint64_t start, uint64_t duration)
{
	return (struct zone_record){ .kind = ZONE_RECORD_ZONE,
				     .lane = lane,
				     .row = 255,
				     .name = name,
				     .start = start,
				     .duration = duration };
}

/* A lane, a name and a zone. */
static struct buf some(void)
{
	struct buf bytes = { 0 };

	put_lane(&bytes, ZONE_MODEL_THREAD);
	put_name(&bytes);
	put(&bytes, zone(0, 0, 10, 20));
	return bytes;
}

static int feed_bytes(struct feed *feed, const struct buf *bytes)
{
	int fd = memfd_create("records", MFD_CLOEXEC);
	struct kymo_error err = { 0 };
	int rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, buf_get(bytes), bytes->used), bytes->used);
	rc = feed_sql_read(feed, fd, "file.kymo", &err);
	assert_int_equal(rc != 0, err.text[0] != '\0');
	close(fd);
	return rc;
}

static int read_bytes(struct buf *bytes)
{
	struct feed feed = { .gen = 1 };
	int rc = feed_bytes(&feed, bytes);

	feed_fini(&feed);
	buf_fini(bytes);
	return rc;
}

static void whole_records_are_zones(void **state)
{
	struct buf bytes = some();
	struct zone_record_run run = { .duration_ns = 99, .steps = 3, .rank = 1, .ranks = 2 };
	struct feed feed = { .gen = 1 };

	(void)state;
	put(&bytes, (struct zone_record){ .kind = ZONE_RECORD_OPEN, .start = 50 });
	put(&bytes, (struct zone_record){ .kind = ZONE_RECORD_RUN, .start = 3 });
	buf_add(&bytes, &run, sizeof(run));
	buf_add(&bytes, "cmd\0\0\0\0\0", 8);
	put(&bytes, (struct zone_record){ .kind = ZONE_RECORD_END, .start = 5 });
	assert_int_equal(feed_bytes(&feed, &bytes), 0);
	assert_int_equal(feed.model.count, 1);
	assert_int_equal(feed.model.hidden, 5);
	assert_string_equal(feed.model.names.list[0].name, "work");
	assert_string_equal(feed.model.names.list[0].source, "c");
	assert_string_equal(feed.model.names.list[0].file, "f.c");
	assert_int_equal(strlen(feed.model.lanes[0].name), 63);
	assert_int_equal(feed.open_count, 1);
	assert_string_equal(feed.command, "cmd");
	assert_int_equal(feed.steps, 3);
	feed_fini(&feed);
	buf_fini(&bytes);
}

static void records_without_their_end_are_refused_wherever_they_are_cut(void **state)
{
	struct buf whole = some();

	(void)state;
	put(&whole, (struct zone_record){ .kind = ZONE_RECORD_END });
	for (size_t bytes = 0; bytes < whole.used; bytes++) {
		struct buf cut = { 0 };

		buf_add(&cut, whole.data, bytes);
		assert_int_equal(read_bytes(&cut), -EIO);
	}
	buf_fini(&whole);
}

static void numbers_that_nothing_has_are_refused(void **state)
{
	const struct zone_record wrong[] = {
		zone(1, 0, 10, 20),
		zone(65535, 0, 10, 20),
		zone(0, 1, 10, 20),
		zone(0, UINT32_MAX, 10, 20),
		zone(0, 0, UINT64_MAX, 20),
		zone(0, 0, 10, UINT64_MAX),
		{ .kind = ZONE_RECORD_KINDS },
		{ .kind = 255 },
		{ .kind = ZONE_RECORD_NAME, .start = UINT64_MAX },
		{ .kind = ZONE_RECORD_NAME, .start = 1, .duration = UINT64_MAX },
		{ .kind = ZONE_RECORD_NAME, .start = UINT32_MAX, .duration = 1 },
		{ .kind = ZONE_RECORD_RUN, .start = UINT64_MAX - 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct buf bytes = some();

		put(&bytes, wrong[i]);
		buf_fill(&bytes, '\0', 256);
		assert_int_equal(read_bytes(&bytes), -EIO);
	}
}

static void lanes_of_no_kind_are_refused(void **state)
{
	struct buf bytes = { 0 };

	(void)state;
	put_lane(&bytes, ZONE_MODEL_KINDS);
	put(&bytes, (struct zone_record){ .kind = ZONE_RECORD_END });
	assert_int_equal(read_bytes(&bytes), -EIO);
}

static void put_step(struct buf *to, enum zone_record_kind kind, uint32_t rank, uint64_t duration,
		     int64_t step)
{
	put(to, (struct zone_record){ .kind = (uint8_t)kind, .name = rank, .duration = duration });
	buf_add(to, &step, sizeof(step));
}

static void steps_of_ranks_are_in_the_map_whatever_their_numbers(void **state)
{
	struct buf bytes = { 0 }, wrong = { 0 };
	struct feed feed = { .gen = 1 };

	(void)state;
	put_step(&bytes, ZONE_RECORD_STEP, 1, 100, 7);
	put_step(&bytes, ZONE_RECORD_WAIT, 1, 40, 7);
	put_step(&bytes, ZONE_RECORD_WAIT, 3, 40, 7); /* no such rank */
	put_step(&bytes, ZONE_RECORD_STEP, 1, UINT64_MAX, 8);
	put_step(&bytes, ZONE_RECORD_STEP, 2, 100, INT64_MIN);
	put_step(&bytes, ZONE_RECORD_STEP, 2, 100, INT64_MAX);
	put(&bytes, (struct zone_record){ .kind = ZONE_RECORD_END });
	assert_int_equal(feed_bytes(&feed, &bytes), 0);
	assert_int_equal(feed.map.rank_count, 1);
	assert_int_equal(feed.map.cells, 1);
	assert_int_equal((int)feed.map.median_wait_ns[0], 40);
	feed_fini(&feed);
	buf_fini(&bytes);
	put_step(&wrong, ZONE_RECORD_STEP, UINT32_MAX, 100, 7);
	put(&wrong, (struct zone_record){ .kind = ZONE_RECORD_END });
	assert_int_equal(read_bytes(&wrong), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_records_are_zones),
		cmocka_unit_test(records_without_their_end_are_refused_wherever_they_are_cut),
		cmocka_unit_test(numbers_that_nothing_has_are_refused),
		cmocka_unit_test(lanes_of_no_kind_are_refused),
		cmocka_unit_test(steps_of_ranks_are_in_the_map_whatever_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
