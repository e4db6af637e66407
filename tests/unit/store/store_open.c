/* What the store says about recordings that are made by hand, whole or with one thing wrong. */
#include "handmade_claims.h"

#include <math.h>

static void assert_totals_are(const struct recording *recording, const struct store_stream *stream,
			      uint64_t upto)
{
	struct handmade_sums sums[4];

	handmade_expected(upto, sums);
	assert_int_equal(stream->total_count, 3);
	assert_int_equal(stream->untotalled, 0);
	for (size_t i = 0; i < stream->total_count; i++) {
		const struct store_total *total = &stream->totals[i];
		const struct handmade_sums *expected = NULL;

		for (int name = 1; name < 4; name++)
			if (!strcmp(recording->names[total->name].text, handmade_words[name - 1]))
				expected = &sums[name];
		assert_non_null(expected);
		assert_int_equal(total->count, expected->count);
		assert_int_equal(total->sum_ticks, expected->sum);
		assert_int_equal(total->child_ticks, expected->child);
		assert_int_equal(total->min_ticks, expected->min);
		assert_int_equal(total->max_ticks, expected->max);
		assert_true(fabs(total->square_ticks - expected->square) <=
			    expected->square * 1e-12);
		assert_memory_equal(total->histogram, expected->histogram,
				    sizeof(expected->histogram));
	}
}

/* ---- rows --------------------------------------------------------------------------------- */

static void a_ring_gives_its_last_rows_in_order(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10000);
	recording = opened(&made);
	assert_int_equal(recording->stream_count, 1);
	assert_false(recording->partial);
	/* The segment that begins at 9,216 moved the floor to 6,144. */
	assert_int_equal(recording->streams[0].kept, 10000 - 6144);
	assert_rows_are(&recording->streams[0], 6144, 10000);
	store_close(recording);
	handmade_free(&made);
}

static void a_ring_that_is_not_full_yet_gives_all_rows(void **state)
{
	struct handmade made = { 0 };
	struct run_files_blob *ring;
	struct recording *recording;

	(void)state;
	handmade_small(&made, 1500);
	/* The file grows in segments: it is not whole before the ring is full. */
	ring = handmade_find(&made, "p10-77/s0.0");
	ring->bytes = sizeof(struct kymo_segment_head) + 2048 * sizeof(struct kymo_zone_row);
	recording = opened(&made);
	assert_false(recording->partial);
	assert_rows_are(&recording->streams[0], 0, 1500);
	store_close(recording);
	handmade_free(&made);
}

static void emitted_is_kept_overwritten_and_dropped(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;
	struct store_stream *stream;

	(void)state;
	handmade_live(handmade_small(&made, 10000))->dropped[KYMO_DROP_REENTRANT] = 5;
	recording = opened(&made);
	stream = &recording->streams[0];
	assert_int_equal(stream->emitted, 10005);
	assert_int_equal(stream->overwritten, 6144);
	assert_int_equal(stream->dropped[KYMO_DROP_REENTRANT], 5);
	assert_int_equal(stream->emitted,
			 stream->kept + stream->overwritten + stream->dropped_total);
	store_close(recording);
	handmade_free(&made);
}

static void a_chain_counts_evicted_segments_as_overwritten(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;
	struct store_stream *stream;

	(void)state;
	handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	handmade_names(&made, "p10-77", handmade_words);
	handmade_threads(&made, "p10-77", 11);
	handmade_chain(&made, "p10-77", 3, 2, 3, 1000, 4500);
	recording = opened(&made);
	stream = &recording->streams[0];
	assert_int_equal(stream->emitted, 4500);
	assert_int_equal(stream->kept, 2500);
	assert_int_equal(stream->overwritten, 2000);
	assert_rows_are(stream, 2000, 4500);
	store_close(recording);
	handmade_free(&made);
}

static void a_segment_that_was_being_made_is_no_problem_but_an_emptied_one_is(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;
	struct run_files_blob *last;

	(void)state;
	handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	handmade_names(&made, "p10-77", handmade_words);
	handmade_threads(&made, "p10-77", 11);
	handmade_chain(&made, "p10-77", 3, 0, 3, 1000, 3000);
	handmade_segment(&made, "p10-77", 3, 3, 3000, 1000);
	last = &made.files[made.count - 1];
	last->bytes = 0;
	recording = opened(&made);
	assert_false(recording->partial);
	assert_rows_are(&recording->streams[0], 0, 3000);
	store_close(recording);
	handmade_find(&made, "p10-77/s3.2")->bytes = 0;
	recording = opened(&made);
	assert_problem(recording, "p10-77/s3.2 is empty");
	assert_int_equal(recording->streams[0].overwritten, 1000);
	store_close(recording);
	handmade_free(&made);
}

static void a_missing_ring_file_leaves_the_counts_and_says_so(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10000);
	handmade_find(&made, "p10-77/s0.0")->path[0] = 'x';
	recording = opened(&made);
	assert_int_equal(recording->streams[0].kept, 0);
	assert_int_equal(recording->streams[0].emitted, 10000);
	assert_int_equal(recording->streams[0].overwritten, 10000);
	assert_problem(recording, "cannot be read");
	store_close(recording);
	handmade_free(&made);
}

/* ---- totals -------------------------------------------------------------------------------- */

static void totals_include_rows_that_were_not_folded_yet(void **state)
{
	(void)state;
	for (uint64_t written = 9984; written < 9984 + 256; written += 51) {
		struct handmade made = { 0 };
		struct recording *recording;

		handmade_small(&made, written);
		recording = opened(&made);
		assert_totals_are(recording, &recording->streams[0], written);
		store_close(recording);
		handmade_free(&made);
	}
}

static void a_name_that_no_slot_has_yet_gets_one(void **state)
{
	struct handmade made = { 0 };
	struct kymo_totals_head *totals;
	struct kymo_stream_head *head;
	struct recording *recording;

	(void)state;
	head = handmade_small(&made, 200);
	totals = (void *)(uintptr_t)handmade_find(&made, "p10-77/s0.totals")->data;
	assert_int_equal(handmade_live(head)->fold_state, 0);
	totals->count = 1;
	recording = opened(&made);
	assert_totals_are(recording, &recording->streams[0], 200);
	store_close(recording);
	handmade_free(&made);
}

/*
 * The stores of record/totals.c, one by one; the program dies before store number stores_left. The
 * order here is the contract of base/fold.h: histogram, histogram_upto for each row; then each
 * slot's other half and its generation; then fold_state.
 */
static long stores_left;
#define STORE(place, value) \
	do { \
		if (stores_left-- <= 0) \
			return; \
		(place) = (value); \
	} while (0)

static void fold_until_death(struct kymo_stream_head *head, char *totals, uint64_t upto)
{
	struct kymo_stream_live *live = handmade_live(head);
	uint64_t state = live->fold_state;
	uint64_t *child_at = live->child_at[(state & 1) ^ 1];
	struct kymo_totals_half sums[3] = { 0 };

	for (int i = 0; i < (int)KYMO_CHILD_DEPTHS + 2; i++)
		STORE(child_at[i], live->child_at[state & 1][i]);
	for (uint64_t n = state >> 1; n < upto; n++) {
		const struct kymo_zone_row row = handmade_row(n);
		struct kymo_totals_slot *slot = (void *)(totals +
							 kymo_totals_slot_offset(row.name - 1));
		uint64_t *histogram = (uint64_t *)(void *)(slot + 1);
		uint64_t before = child_at[row.depth], below = child_at[row.depth + 1];
		struct kymo_totals_half *sum = &sums[row.name - 1];

		STORE(child_at[row.depth + 1], 0);
		STORE(child_at[row.depth], before + row.duration_ticks);
		sum->child_ticks += below;
		sum->sum_ticks += row.duration_ticks;
		fold_add_square(sum, (unsigned __int128)row.duration_ticks * row.duration_ticks);
		sum->min_ticks = !sum->count || row.duration_ticks < sum->min_ticks
					 ? row.duration_ticks
					 : sum->min_ticks;
		sum->max_ticks = row.duration_ticks > sum->max_ticks ? row.duration_ticks
								     : sum->max_ticks;
		sum->count++;
		STORE(histogram[hist_bucket(row.duration_ticks)],
		      histogram[hist_bucket(row.duration_ticks)] + 1);
		STORE(live->histogram_upto, n + 1);
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct kymo_totals_slot *slot = (void *)(totals + kymo_totals_slot_offset(i));
		const struct kymo_totals_half *old = &slot->half[slot->generation & 1];
		struct kymo_totals_half *half = &slot->half[(slot->generation + 1) & 1];
		struct kymo_totals_half sum = *old;

		if (!sums[i].count)
			continue;
		fold_add_square(&sum,
				(unsigned __int128)sums[i].square_high << 64 | sums[i].square_low);
		STORE(half->upto, upto);
		STORE(half->count, old->count + sums[i].count);
		STORE(half->sum_ticks, old->sum_ticks + sums[i].sum_ticks);
		STORE(half->child_ticks, old->child_ticks + sums[i].child_ticks);
		STORE(half->square_low, sum.square_low);
		STORE(half->square_high, sum.square_high);
		STORE(half->min_ticks, old->count && old->min_ticks < sums[i].min_ticks
					       ? old->min_ticks
					       : sums[i].min_ticks);
		STORE(half->max_ticks,
		      old->max_ticks > sums[i].max_ticks ? old->max_ticks : sums[i].max_ticks);
		STORE(slot->generation, slot->generation + 1);
	}
	STORE(live->fold_state, upto << 1 | ((state & 1) ^ 1));
}

static void death_at_every_store_of_a_fold_leaves_exact_totals(void **state)
{
	const uint64_t written = 700;
	long store = 0;

	(void)state;
	for (;; store++) {
		struct handmade made = { 0 };
		struct kymo_stream_head *head = handmade_small(&made, written);
		struct recording *recording;
		bool survived;

		stores_left = store;
		fold_until_death(head,
				 (char *)(uintptr_t)handmade_find(&made, "p10-77/s0.totals")->data,
				 690);
		survived = stores_left >= 0;
		recording = opened(&made);
		assert_false(recording->partial);
		assert_totals_are(recording, &recording->streams[0], written);
		store_close(recording);
		handmade_free(&made);
		if (survived)
			break;
	}
	assert_true(store > 700);
}

static void totals_of_rows_that_are_gone_say_what_they_lack(void **state)
{
	struct handmade made = { 0 };
	struct kymo_stream_head *head = handmade_small(&made, 10000);
	struct recording *recording;

	(void)state;
	handmade_live(head)->fold_state = 100 << 1;
	recording = opened(&made);
	assert_problem(recording, "exact totals lack");
	store_close(recording);
	handmade_free(&made);
}

/* ---- open zones, names, threads ------------------------------------------------------------ */

static void zones_that_are_open_are_listed_and_holes_are_not(void **state)
{
	struct handmade made = { 0 };
	struct kymo_open_stack *open = handmade_open(handmade_small(&made, 10));
	struct recording *recording;
	struct store_stream *stream;

	(void)state;
	open->depth = 70;
	open->entries[0] = (struct kymo_open_entry){ HANDMADE_EPOCH + 2000, 3, 0 };
	open->entries[2] = (struct kymo_open_entry){ HANDMADE_EPOCH + 4000, 1, 0 };
	recording = opened(&made);
	stream = &recording->streams[0];
	assert_int_equal(stream->open_count, 2);
	assert_int_equal(stream->open_deeper, 6);
	assert_string_equal(recording->names[stream->open_zones[0].name].text, "outer");
	assert_int_equal(stream->open_zones[0].start_ns, 1000);
	assert_int_equal(stream->open_zones[1].depth, 2);
	assert_int_equal(recording->threads[stream->open_zones[1].thread].tid, 11);
	store_close(recording);
	handmade_free(&made);
}

static void a_zone_whose_row_is_there_is_not_open(void **state)
{
	struct handmade made = { 0 };
	struct kymo_open_stack *open = handmade_open(handmade_small(&made, 10));
	struct recording *recording;

	(void)state;
	/* The program died between raising the depth and filling the entry: it is that of row 7. */
	open->depth = 1;
	open->entries[0] = (struct kymo_open_entry){ handmade_row(7).start_ticks,
						     handmade_row(7).name, 0 };
	recording = opened(&made);
	assert_int_equal(recording->streams[0].open_count, 0);
	store_close(recording);
	handmade_free(&made);
}

static void names_of_all_processes_are_one_list_of_valid_text(void **state)
{
	static const char *const others[] = { "outer", "bad \xff\xc3 text", "grün", NULL };
	struct handmade made = { 0 };
	struct recording *recording;
	const struct store_process *first, *second;

	(void)state;
	handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	handmade_names(&made, "p10-77", handmade_words);
	handmade_threads(&made, "p10-77", 11);
	handmade_control(&made, "p12-77", 12);
	handmade_names(&made, "p12-77", others);
	handmade_threads(&made, "p12-77", 13);
	recording = opened(&made);
	assert_int_equal(recording->process_count, 2);
	assert_int_equal(recording->name_count, 6);
	first = &recording->processes[0];
	second = &recording->processes[1];
	assert_int_equal(first->name_of[3], second->name_of[1]);
	assert_string_equal(recording->names[second->name_of[2]].text,
			    "bad \xef\xbf\xbd\xef\xbf\xbd text");
	assert_string_equal(recording->names[second->name_of[3]].text, "grün");
	assert_string_equal(recording->names[second->name_of[3]].file, "f.py");
	assert_int_equal(recording->threads[second->thread_of[1]].tid, 13);
	assert_string_equal(recording->threads[second->thread_of[1]].name, "main");
	store_close(recording);
	handmade_free(&made);
}

static void the_command_is_quoted_for_a_shell(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	recording = opened(&made);
	assert_string_equal(recording->command, "python train.py --name 'it'\\''s me'");
	store_close(recording);
	handmade_free(&made);
}

static void lost_rows_are_streams_without_a_file(void **state)
{
	struct handmade made = { 0 };
	struct kymo_control *control;
	struct recording *recording;
	const struct store_stream *lost;

	(void)state;
	handmade_small(&made, 10);
	control = (void *)(uintptr_t)handmade_find(&made, "p10-77/control")->data;
	strcpy(control->lost[20].table, "app.requests");
	control->lost[20].dropped[KYMO_DROP_FAILED] = 9;
	recording = opened(&made);
	assert_int_equal(recording->stream_count, 2);
	lost = &recording->streams[1];
	assert_true(lost->without_file);
	assert_string_equal(lost->table, "app.requests");
	assert_int_equal(lost->emitted, 9);
	assert_int_equal(lost->dropped_total, 9);
	store_close(recording);
	handmade_free(&made);
}

/* ---- what is missing, foreign or of another version ------------------------------------------ */

static void without_a_run_file_a_process_says_who_it_was(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	handmade_find(&made, "run")->path[0] = 'x';
	recording = opened(&made);
	assert_true(recording->partial);
	assert_string_equal(recording->program, "train.py");
	assert_int_equal(recording->run.target_pid, 10);
	assert_int_equal(recording->run.epoch.ticks, HANDMADE_EPOCH);
	assert_rows_are(&recording->streams[0], 0, 10);
	store_close(recording);
	handmade_free(&made);
}

static void without_a_control_page_the_rows_are_there(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;

	(void)state;
	handmade_small(&made, 10);
	handmade_find(&made, "p10-77/control")->path[0] = 'x';
	recording = opened(&made);
	assert_problem(recording, "p10-77/control");
	assert_int_equal(recording->processes[0].pid, 10);
	assert_int_equal(recording->processes[0].state, STORE_LOST);
	assert_rows_are(&recording->streams[0], 0, 10);
	store_close(recording);
	handmade_free(&made);
}

static void a_newer_version_is_refused_in_a_sentence(void **state)
{
	struct handmade made = { 0 };
	struct recording *recording;
	char directory[64];
	struct kymo_error err = { 0 };
	struct kymo_run_file *run;

	(void)state;
	handmade_small(&made, 10);
	((struct kymo_file_head *)(uintptr_t)handmade_find(&made, "p10-77/s0.head")->data)
		->version = 9;
	recording = opened(&made);
	assert_problem(recording,
		       "p10-77/s0 has format version 9, but this kymo reads versions 1 to 1");
	assert_int_equal(recording->stream_count, 0);
	store_close(recording);
	handmade_free(&made);

	run = handmade_run(&made);
	run->file.version = 9;
	handmade_write(&made, handmade_mkdir(directory));
	assert_int_equal(store_kind(directory, &err), STORE_NONE);
	assert_non_null(strstr(err.text, "/run has format version 9, but this kymo reads versions "
					 "1 to 1; use a newer kymo"));
	handmade_rm(directory);
	handmade_free(&made);
}

static void what_is_no_recording_is_told_from_one(void **state)
{
	char directory[64], path[128];
	struct kymo_error err = { 0 };
	FILE *file;

	(void)state;
	handmade_mkdir(directory);
	assert_int_equal(store_kind(directory, &err), STORE_NONE);
	assert_non_null(strstr(err.text, "is not a kymo recording"));
	assert_int_equal(store_kind("/nowhere/at/all", &err), STORE_NONE);
	assert_non_null(strstr(err.text, "No such file"));
	snprintf(path, sizeof(path), "%s/x.kymo", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("12345678DUCK and more", file);
	fclose(file);
	assert_int_equal(store_kind(path, &err), STORE_PACKED);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(store_kind(path, &err), STORE_NONE);
	assert_non_null(strstr(err.text, "it is empty"));
	handmade_rm(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_gives_its_last_rows_in_order),
		cmocka_unit_test(a_ring_that_is_not_full_yet_gives_all_rows),
		cmocka_unit_test(emitted_is_kept_overwritten_and_dropped),
		cmocka_unit_test(a_chain_counts_evicted_segments_as_overwritten),
		cmocka_unit_test(a_segment_that_was_being_made_is_no_problem_but_an_emptied_one_is),
		cmocka_unit_test(a_missing_ring_file_leaves_the_counts_and_says_so),
		cmocka_unit_test(totals_include_rows_that_were_not_folded_yet),
		cmocka_unit_test(a_name_that_no_slot_has_yet_gets_one),
		cmocka_unit_test(death_at_every_store_of_a_fold_leaves_exact_totals),
		cmocka_unit_test(totals_of_rows_that_are_gone_say_what_they_lack),
		cmocka_unit_test(zones_that_are_open_are_listed_and_holes_are_not),
		cmocka_unit_test(a_zone_whose_row_is_there_is_not_open),
		cmocka_unit_test(names_of_all_processes_are_one_list_of_valid_text),
		cmocka_unit_test(the_command_is_quoted_for_a_shell),
		cmocka_unit_test(lost_rows_are_streams_without_a_file),
		cmocka_unit_test(without_a_run_file_a_process_says_who_it_was),
		cmocka_unit_test(without_a_control_page_the_rows_are_there),
		cmocka_unit_test(a_newer_version_is_refused_in_a_sentence),
		cmocka_unit_test(what_is_no_recording_is_told_from_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
