/* Reading while somebody writes: a writer at full speed by the protocol, one that obeys nothing,
   one that cuts files. */
#include "handmade.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include <kymo/atomic.h>

#define SECONDS 3
#define PERIOD 15009u /* after so many rows durations, names and depths come again */

struct live_processes {
	char directory[64];
	struct handmade made;
	char *head_map, *ring_map, *totals_map;
	atomic_bool stop;
	pthread_t thread;
};

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static char *map_file(const struct live_processes *live, const char *name, size_t bytes)
{
	char path[128];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/p10-77/%s", live->directory, name);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

static void begin(struct live_processes *live, void *(*writer)(void *))
{
	memset(live, 0, sizeof(*live));
	handmade_small(&live->made, 0);
	handmade_write(&live->made, handmade_mkdir(live->directory));
	live->head_map = map_file(live, "s0.head", KYMO_HEAD_FILE_BYTES);
	live->ring_map = map_file(live, "s0.0",
				  sizeof(struct kymo_segment_head) +
					  HANDMADE_CAP * sizeof(struct kymo_zone_row));
	live->totals_map = map_file(live, "s0.totals", kymo_totals_slot_offset(4));
	assert_int_equal(pthread_create(&live->thread, NULL, writer, live), 0);
}

static void end(struct live_processes *live)
{
	live->stop = true;
	pthread_join(live->thread, NULL);
	munmap(live->head_map, KYMO_HEAD_FILE_BYTES);
	munmap(live->ring_map,
	       sizeof(struct kymo_segment_head) + HANDMADE_CAP * sizeof(struct kymo_zone_row));
	munmap(live->totals_map, kymo_totals_slot_offset(4));
	handmade_rm(live->directory);
	handmade_free(&live->made);
}

/* ---- a writer that keeps the protocol -------------------------------------------------------- */

static struct kymo_totals_slot *slot_of(struct live_processes *live, uint32_t name)
{
	return (void *)(live->totals_map + kymo_totals_slot_offset(name - 1));
}

static void put(uint64_t *place, uint64_t value)
{
	kymo__store_relaxed(place, value);
}

/* As record/totals.c does it; base/fold.h says in which order and why. */
static void fold(struct live_processes *live, uint64_t upto)
{
	struct kymo_stream_live *stream = handmade_live((void *)live->head_map);
	uint64_t state = stream->fold_state;
	uint64_t *child_at = stream->child_at[(state & 1) ^ 1];
	struct kymo_totals_half sums[4] = { 0 };

	memcpy(child_at, stream->child_at[state & 1], sizeof(stream->child_at[0]));
	for (uint64_t n = state >> 1; n < upto; n++) {
		const struct kymo_zone_row row = handmade_row(n);
		uint64_t *histogram = (uint64_t *)(void *)(slot_of(live, row.name) + 1);
		struct kymo_totals_half *sum = &sums[row.name];
		uint64_t ticks = row.duration_ticks;

		sum->child_ticks += fold_child(child_at, &row);
		sum->sum_ticks += ticks;
		fold_add_square(sum, (unsigned __int128)ticks * ticks);
		sum->min_ticks = !sum->count || ticks < sum->min_ticks ? ticks : sum->min_ticks;
		sum->max_ticks = ticks > sum->max_ticks ? ticks : sum->max_ticks;
		sum->count++;
		put(&histogram[hist_bucket(ticks)], histogram[hist_bucket(ticks)] + 1);
		kymo__store_release(&stream->histogram_upto, n + 1);
	}
	for (uint32_t name = 1; name < 4; name++) {
		struct kymo_totals_slot *slot = slot_of(live, name);
		const struct kymo_totals_half *old = &slot->half[slot->generation & 1];
		struct kymo_totals_half half = *old;

		half.upto = upto;
		half.min_ticks = old->count && old->min_ticks < sums[name].min_ticks
					 ? old->min_ticks
					 : sums[name].min_ticks;
		half.max_ticks = old->max_ticks > sums[name].max_ticks ? old->max_ticks
								       : sums[name].max_ticks;
		half.count += sums[name].count;
		half.sum_ticks += sums[name].sum_ticks;
		half.child_ticks += sums[name].child_ticks;
		fold_add_square(&half, (unsigned __int128)sums[name].square_high << 64 |
					       sums[name].square_low);
		slot->half[(slot->generation + 1) & 1] = half;
		kymo__store_release(&slot->generation, slot->generation + 1);
	}
	kymo__store_release(&stream->fold_state, upto << 1 | ((state & 1) ^ 1));
}

static void *honest_writer(void *argument)
{
	struct live_processes *live = argument;
	struct kymo_stream_live *stream = handmade_live((void *)live->head_map);
	struct kymo_zone_row *rows = (void *)(live->ring_map + sizeof(struct kymo_segment_head));

	for (uint64_t n = 0; !live->stop; n++) {
		const struct kymo_zone_row row = handmade_row(n);
		const uint64_t *words = (const void *)&row;
		uint64_t *slot = (void *)&rows[n % HANDMADE_CAP];

		if (n % KYMO_BATCH_ROWS == 0)
			fold(live, n);
		if (n >= HANDMADE_CAP && n % KYMO_RING_SEGMENT_ROWS == 0) {
			kymo__store_relaxed(&stream->floor,
					    n + KYMO_RING_SEGMENT_ROWS - HANDMADE_CAP);
			kymo__fence_release();
		}
		for (int i = 0; i < 4; i++)
			put(&slot[i], words[i]);
		kymo__store_release(&stream->head, n + 1);
	}
	return NULL;
}

static void assert_all_whole(const struct store_stream *stream)
{
	static struct kymo_zone_row rows[HANDMADE_CAP];
	uint64_t number = stream->overwritten;

	for (size_t c = 0; c < stream->chunk_count; c++) {
		const struct store_chunk *chunk = &stream->chunks[c];

		assert_int_equal(chunk->first_row, number);
		assert_int_equal(store_read_rows(stream, chunk, 0, chunk->rows, rows), chunk->rows);
		for (uint64_t i = 0; i < chunk->rows; i++, number++)
			if (!handmade_row_is(&rows[i], number))
				fail_msg("row %llu is torn", (unsigned long long)number);
	}
	assert_int_equal(number, stream->emitted);
}

static void assert_totals_exact(const struct store_stream *stream)
{
	static struct handmade_sums period[4];
	struct handmade_sums rest[4];
	const uint64_t times = stream->emitted / PERIOD;

	if (!period[1].count)
		handmade_expected(PERIOD, period);
	handmade_expected(stream->emitted % PERIOD, rest);
	for (size_t i = 0; i < stream->total_count; i++) {
		const struct store_total *total = &stream->totals[i];
		uint32_t name = total->name; /* the first names of the only process */

		assert_int_equal(total->count, times * period[name].count + rest[name].count);
		assert_int_equal(total->sum_ticks, times * period[name].sum + rest[name].sum);
		assert_int_equal(total->child_ticks, times * period[name].child + rest[name].child);
		for (uint32_t b = 0; b < KYMO_HIST_BUCKETS; b++)
			assert_int_equal(total->histogram[b], times * period[name].histogram[b] +
								      rest[name].histogram[b]);
	}
}

static void no_row_is_torn_and_totals_are_exact_at_full_speed(void **state)
{
	struct live_processes live;
	struct kymo_error err = { 0 };
	double until = seconds_now() + SECONDS;
	uint64_t opened = 0, inexact = 0, rows = 0, last = 0;

	(void)state;
	begin(&live, honest_writer);
	while (seconds_now() < until) {
		struct recording *recording;
		const struct store_stream *stream;

		assert_int_equal(store_open(live.directory, &recording, &err), 0);
		stream = &recording->streams[0];
		assert_all_whole(stream);
		assert_true(stream->emitted >= last);
		/* On a machine with too few cores the writer may go round the ring in each of our
		   eight attempts; then we say so. */
		if (recording->partial)
			inexact++;
		else if (stream->emitted)
			assert_totals_exact(stream);
		last = stream->emitted;
		rows += stream->kept;
		opened++;
		store_close(recording);
	}
	end(&live);
	print_message("%llu opens of %llu rows written, %llu rows read, %llu said that totals lack "
		      "rows\n",
		      (unsigned long long)opened, (unsigned long long)last,
		      (unsigned long long)rows, (unsigned long long)inexact);
	assert_true(opened > 10 && rows > 0);
	assert_true(inexact * 10 <= opened);
}

/* ---- writers that keep nothing ---- */

static void *hostile_writer(void *argument)
{
	struct live_processes *live = argument;
	uint64_t random = 88172645463325252ull;

	while (!live->stop) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (random % 3)
			put((uint64_t *)(void *)(live->head_map + KYMO_LIVE_OFFSET) +
				    random / 16 % 32,
			    random >> (random / 1024 % 64));
		else if (random % 2)
			put((uint64_t *)(void *)live->head_map +
				    random / 16 % (KYMO_HEAD_FILE_BYTES / 8),
			    random);
		else
			put((uint64_t *)(void *)live->totals_map + random / 16 % 64, random);
	}
	return NULL;
}

static void a_hostile_writer_gets_no_more_than_an_error(void **state)
{
	struct live_processes live;
	double until = seconds_now() + SECONDS;

	(void)state;
	begin(&live, hostile_writer);
	while (seconds_now() < until) {
		struct kymo_error err = { 0 };
		struct recording *recording;

		/* The head's first page is mended each time, or there would soon be nothing to
		   read. */
		memcpy(live.head_map, handmade_find(&live.made, "p10-77/s0.head")->data,
		       KYMO_LIVE_OFFSET);
		if (store_open(live.directory, &recording, &err)) {
			assert_true(err.text[0]);
			continue;
		}
		handmade_walk(recording);
		store_close(recording);
	}
	end(&live);
}

static void *cutter(void *argument)
{
	static const char *const names[] = { "s0.head", "s0.0",	   "s0.totals", "names",
					     "text",	"threads", "control" };
	struct live_processes *live = argument;
	char path[128];

	for (unsigned int i = 0; !live->stop; i++) {
		const char *name = names[i % 7];
		struct run_files_blob *file;

		snprintf(path, sizeof(path), "p10-77/%s", name);
		file = handmade_find(&live->made, path);
		snprintf(path, sizeof(path), "%s/p10-77/%s", live->directory, name);
		if (truncate(path, (off_t)(file->bytes * (i / 7 % 5) / 5)))
			continue;
		handmade_write_some(&live->made, live->directory, file->path);
	}
	return NULL;
}

static void a_file_that_is_cut_under_the_reader_is_a_short_read(void **state)
{
	struct live_processes live;
	double until = seconds_now() + 1;

	(void)state;
	begin(&live, cutter);
	while (seconds_now() < until) {
		struct kymo_error err = { 0 };
		struct recording *recording;

		if (store_open(live.directory, &recording, &err))
			continue;
		handmade_walk(recording);
		store_close(recording);
	}
	end(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_row_is_torn_and_totals_are_exact_at_full_speed),
		cmocka_unit_test(a_hostile_writer_gets_no_more_than_an_error),
		cmocka_unit_test(a_file_that_is_cut_under_the_reader_is_a_short_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
