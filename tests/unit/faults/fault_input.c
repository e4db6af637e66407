/* Recordings of other versions (FAULTS 36) and impossible times in them (FAULTS 22). */
#include "handmade.h"

#include <cmocka.h>

static struct recording *opened(struct handmade *made)
{
	struct kymo_error err = { 0 };
	struct recording *recording = NULL;

	if (handmade_open_memory(made, &recording, &err))
		fail_msg("%s", err.text);
	return recording;
}

static struct kymo_file_head *head_of(struct handmade *made, const char *path)
{
	return (void *)(uintptr_t)handmade_find(made, path)->data;
}

/* All but the ring's own file: its rows are in the place that the stream's head says, and nothing
   else in it is read. */
static const char *const all_files[] = { "run",
					 "p10-77/control",
					 "p10-77/names",
					 "p10-77/text",
					 "p10-77/threads",
					 "p10-77/s0.head",
					 "p10-77/s0.totals",
					 "p10-77/s1.head",
					 "p10-77/s1.0" };

static bool some_problem_says(const struct recording *recording, const char *text)
{
	for (size_t i = 0; i < recording->problem_count; i++)
		if (strstr(recording->problems[i], text))
			return true;
	return false;
}

static void any_file_of_another_version_is_refused_by_name_and_the_rest_is_read(void **state)
{
	static const uint32_t versions[] = { 0, KYMO_FORMAT_VERSION + 1, UINT32_MAX };

	(void)state;
	for (size_t f = 0; f < sizeof(all_files) / sizeof(all_files[0]); f++)
		for (size_t v = 0; v < 3; v++) {
			struct handmade made = { 0 };
			struct kymo_error err = { 0 };
			struct recording *recording = NULL;
			char sentence[64];

			handmade_all(&made);
			head_of(&made, all_files[f])->version = versions[v];
			snprintf(sentence, sizeof(sentence),
				 "has format version %u, but this kymo reads", versions[v]);
			if (handmade_open_memory(&made, &recording, &err)) {
				assert_non_null(strstr(err.text, sentence));
			} else {
				if (!some_problem_says(recording, sentence))
					fail_msg("%s of version %u is read without a word",
						 all_files[f], versions[v]);
				assert_true(recording->partial);
				handmade_walk(recording);
				store_close(recording);
			}
			handmade_free(&made);
		}
}

/* A newer minor version has longer heads: in the pages that have room for it, the rest stays in its
   place. */
static void heads_that_have_grown_are_read_as_far_as_they_are_known(void **state)
{
	static const char *const grown[] = { "run", "p10-77/control", "p10-77/s0.head" };
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 100);
	for (int i = 0; i < 3; i++) {
		struct run_files_blob *file = handmade_find(&made, grown[i]);
		struct kymo_file_head *head = (void *)(uintptr_t)file->data;

		if (head->head_bytes + 64 > file->bytes) {
			file->data = realloc(head, head->head_bytes + 64);
			head = (void *)(uintptr_t)file->data;
			file->bytes = head->head_bytes + 64;
			memset((char *)head + head->head_bytes, 0xee, 64);
		}
		head->head_bytes += 64;
	}
	recording = opened(&made);
	assert_int_equal(recording->problem_count, 0);
	assert_int_equal(recording->streams[0].kept, 100);
	store_close(recording);
	handmade_free(&made);
}

static void impossible_times_are_read_and_harm_no_other(void **state)
{
	static const uint64_t times[] = { 0, 1, INT64_MAX, UINT64_MAX - 1, UINT64_MAX };
	struct handmade made = { 0 };
	struct recording *recording;
	struct kymo_zone_row *rows, row;

	(void)state;
	handmade_small(&made, 100);
	rows = (void *)((char *)(uintptr_t)handmade_find(&made, "p10-77/s0.0")->data +
			sizeof(struct kymo_segment_head));
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 5; k++) {
			rows[i * 5 + k].start_ticks = times[i];
			rows[i * 5 + k].duration_ticks = times[k];
		}
	recording = opened(&made);
	assert_int_equal(recording->streams[0].kept, 100);
	assert_true(recording->duration_ns >= 0);
	for (uint64_t i = 0; i < 100; i++) {
		int64_t start, span;

		assert_int_equal(store_read_rows(&recording->streams[0],
						 &recording->streams[0].chunks[0], i, 1, &row),
				 1);
		start = store_clock_ns(&recording->processes[0].clock, row.start_ticks);
		span = store_clock_span_ns(&recording->processes[0].clock, row.duration_ticks);
		assert_true(span >= 0);
		if (i < 10) /* before the epoch */
			assert_true(start < 0);
		else if (i < 25)
			assert_true(start > 1000000000);
		else
			assert_true(handmade_row_is(&row, i));
	}
	store_close(recording);
	handmade_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			any_file_of_another_version_is_refused_by_name_and_the_rest_is_read),
		cmocka_unit_test(heads_that_have_grown_are_read_as_far_as_they_are_known),
		cmocka_unit_test(impossible_times_are_read_and_harm_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
