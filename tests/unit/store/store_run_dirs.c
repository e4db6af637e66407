/* Recordings in two directories, in many files, and with files in them that are none. */
#include <sys/resource.h>

#include "handmade_claims.h"

static void segments_of_both_halves_are_one_chain(void **state)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;
	struct recording *recording;
	struct kymo_error err = { 0 };
	char live[64], disk[64], path[128];

	(void)state;
	handmade_mkdir(live);
	handmade_mkdir(disk);
	run = handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	handmade_names(&made, "p10-77", handmade_words);
	handmade_threads(&made, "p10-77", 11);
	handmade_chain(&made, "p10-77", 3, 0, 5, 1000, 4500);
	strcpy(run->peer, disk);
	handmade_write(&made, live);
	strcpy(run->peer, live);
	handmade_write_some(&made, disk, "run");
	/* 0 and 1 have moved, 2 is in both: copied, not yet unlinked. */
	handmade_write_some(&made, disk, "p10-77/s3.0");
	handmade_write_some(&made, disk, "p10-77/s3.1");
	handmade_write_some(&made, disk, "p10-77/s3.2");
	snprintf(path, sizeof(path), "%s/p10-77/s3.0", live);
	unlink(path);
	snprintf(path, sizeof(path), "%s/p10-77/s3.1", live);
	unlink(path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_open(i ? disk : live, &recording, &err), 0);
		assert_false(recording->partial);
		assert_int_equal(recording->streams[0].kept, 4500);
		assert_int_equal(recording->streams[0].chunk_count, 5);
		assert_rows_are(&recording->streams[0], 0, 4500);
		store_close(recording);
	}
	handmade_rm(live);
	assert_int_equal(store_open(disk, &recording, &err), 0);
	assert_true(recording->partial);
	store_close(recording);
	handmade_rm(disk);
	handmade_free(&made);
}

static void a_peer_that_is_another_run_is_not_followed(void **state)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;
	struct recording *recording;
	struct kymo_error err = { 0 };
	char ours[64], other[64];

	(void)state;
	handmade_mkdir(ours);
	handmade_mkdir(other);
	handmade_small(&made, 100);
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	run->epoch.ticks++;
	handmade_write(&made, other);
	run->epoch.ticks--;
	strcpy(run->peer, other);
	handmade_write_some(&made, ours, "run");
	assert_int_equal(store_open(ours, &recording, &err), 0);
	assert_int_equal(recording->process_count, 0);
	store_close(recording);
	handmade_rm(ours);
	handmade_rm(other);
	handmade_free(&made);
}

static void links_and_pipes_in_a_recording_are_not_opened(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;
	struct kymo_error err = { 0 };
	char directory[64], path[128];

	(void)state;
	handmade_small(&made, 100);
	handmade_write(&made, handmade_mkdir(directory));
	snprintf(path, sizeof(path), "%s/p10-77/s0.0", directory);
	unlink(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	snprintf(path, sizeof(path), "%s/p10-77/s0.totals", directory);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(store_open(directory, &recording, &err), 0);
	assert_int_equal(recording->streams[0].kept, 0);
	assert_int_equal(recording->streams[0].total_count, 0);
	assert_true(recording->partial);
	store_close(recording);
	handmade_rm(directory);
	handmade_free(&made);
}

static void beyond_a_thousand_segments_files_are_opened_when_read(void **state)
{
	struct handmade made = { 0 };
	struct kymo_stream_head *head;
	struct recording *recording;
	struct kymo_error err = { 0 };
	const struct rlimit few = { 2000, 2000 };
	char directory[64];
	size_t held = 0;

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0); /* half of them may be held */
	handmade_mkdir(directory);
	handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	head = handmade_chain(&made, "p10-77", 3, 0, 0, 10, 12000);
	handmade_write(&made, directory);
	for (uint64_t s = 0; s < 1200; s++) {
		struct handmade one = { 0 };
		struct kymo_zone_row *rows = handmade_segment(&one, "p10-77", 3, s, s * 10, 10);

		for (uint64_t i = 0; i < 10; i++)
			rows[i] = handmade_row(s * 10 + i);
		handmade_write(&one, directory);
		handmade_free(&one);
	}
	assert_non_null(head);
	assert_int_equal(store_open(directory, &recording, &err), 0);
	assert_int_equal(recording->streams[0].chunk_count, 1200);
	for (size_t i = 0; i < 1200; i++)
		held += recording->streams[0].chunks[i].fd >= 0;
	assert_true(held <= 1000);
	assert_rows_are(&recording->streams[0], 0, 12000);
	store_close(recording);
	handmade_rm(directory);
	handmade_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_of_both_halves_are_one_chain),
		cmocka_unit_test(a_peer_that_is_another_run_is_not_followed),
		cmocka_unit_test(links_and_pipes_in_a_recording_are_not_opened),
		cmocka_unit_test(beyond_a_thousand_segments_files_are_opened_when_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
