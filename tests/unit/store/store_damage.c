/* Recordings with any byte wrong or missing: an error or the good part, in bounded memory, never a
   crash. */
#include "handmade.h"

#include <sys/resource.h>

#include <cmocka.h>

#include "record/snapshot.h"

/* Whatever comes of it, it can be walked. */
static void open_and_walk(struct handmade *made)
{
	struct kymo_error err = { 0 };
	struct recording *recording;

	if (handmade_open_memory(made, &recording, &err)) {
		assert_true(err.code && err.text[0]);
		return;
	}
	handmade_walk(recording);
	store_close(recording);
}

static void every_byte_flipped(void **state)
{
	struct handmade made = { 0 };

	(void)state;
	handmade_all(&made);
	for (size_t f = 0; f < made.count; f++) {
		unsigned char *bytes = (unsigned char *)(uintptr_t)made.files[f].data;

		for (size_t at = 0; at < made.files[f].bytes; at++) {
			unsigned char old = bytes[at];

			/* In the long stretches of zeros one bit in some bytes says it all. */
			if (!old && at % 8 && at > 256 && at % 61)
				continue;
			bytes[at] = old ^ 0xff;
			open_and_walk(&made);
			bytes[at] = old ^ (unsigned char)(1u << at % 8);
			open_and_walk(&made);
			bytes[at] = old;
		}
	}
	handmade_free(&made);
}

static void every_file_cut_anywhere(void **state)
{
	struct handmade made = { 0 };

	(void)state;
	handmade_all(&made);
	for (size_t f = 0; f < made.count; f++) {
		size_t whole = made.files[f].bytes;

		for (size_t bytes = 0; bytes < whole;
		     bytes += bytes < 512 || whole < 4096 ? 1 : 61) {
			/* A copy of that length, so that a look beyond it is seen by the
			   sanitizer. */
			const void *old = made.files[f].data;
			void *cut = malloc(bytes ? bytes : 1);

			memcpy(cut, old, bytes);
			made.files[f].data = cut;
			made.files[f].bytes = bytes;
			open_and_walk(&made);
			made.files[f].data = old;
			free(cut);
		}
		made.files[f].bytes = whole;
	}
	handmade_free(&made);
}

static char *read_whole(const char *path, size_t *out_bytes)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *bytes;

	assert_true(fd >= 0 && !fstat(fd, &st));
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*out_bytes = (size_t)st.st_size;
	return bytes;
}

static void open_snapshot_bytes(const void *bytes, size_t count)
{
	struct kymo_error err = { 0 };
	struct recording *recording;
	struct run_files source;

	if (run_files_open_snapshot(&source, bytes, count, &err) ||
	    inside_open(&source, "in memory", 1, &recording, &err)) {
		assert_true(err.code && err.text[0]);
		return;
	}
	handmade_walk(recording);
	store_close(recording);
}

static void every_byte_of_a_snapshot_flipped_or_cut(void **state)
{
	struct handmade made = { 0 };
	char directory[64], path[128];
	struct kymo_error err = { 0 };
	size_t count;
	char *bytes;

	(void)state;
	handmade_all(&made);
	handmade_write(&made, handmade_mkdir(directory));
	snprintf(path, sizeof(path), "%s/x.ksnap", directory);
	assert_int_equal(kymo__snapshot_write(directory, NULL, path, &err), 0);
	bytes = read_whole(path, &count);
	open_snapshot_bytes(bytes, count);
	for (size_t at = 0; at < count; at++) {
		char old = bytes[at];

		if (!old && at % 8 && at > 64 && at % 61)
			continue;
		bytes[at] = (char)~old;
		open_snapshot_bytes(bytes, count);
		bytes[at] = old;
	}
	for (size_t cut = 0; cut < count; cut += cut < 256 || cut > count - 2048 ? 1 : 97) {
		char *part = malloc(cut ? cut : 1);

		memcpy(part, bytes, cut);
		open_snapshot_bytes(part, cut);
		free(part);
	}
	free(bytes);
	handmade_rm(directory);
	handmade_free(&made);
}

/* FAULTS 31: numbers that would need all the memory there is. */
static void absurd_numbers_are_refused_at_once(void **state)
{
	static const uint64_t absurd[] = { UINT64_C(1) << 60, UINT64_MAX, UINT64_MAX / 32 + 1,
					   INT64_MAX, 1000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		struct handmade made = { 0 };
		struct kymo_stream_head *head;
		struct kymo_segment_head *segment;
		uint64_t *words[12];
		size_t count = 0;

		handmade_all(&made);
		head = (void *)(uintptr_t)handmade_find(&made, "p10-77/s0.head")->data;
		segment = (void *)(uintptr_t)handmade_find(&made, "p10-77/s1.0")->data;
		words[count++] = &head->cap_rows;
		words[count++] = &handmade_live(head)->head;
		words[count++] = &handmade_live(head)->floor;
		words[count++] = &handmade_live(head)->fold_state;
		words[count++] = &handmade_live(head)->histogram_upto;
		words[count++] = &handmade_live(head)->dropped[0];
		words[count++] = &segment->first_row;
		words[count++] = &segment->rows;
		words[count++] = &((struct kymo_names_head *)(uintptr_t)handmade_find(
					   &made, "p10-77/names")
					   ->data)
					  ->count;
		words[count++] = &((struct kymo_threads_head *)(uintptr_t)handmade_find(
					   &made, "p10-77/threads")
					   ->data)
					  ->count;
		words[count++] = &((struct kymo_totals_head *)(uintptr_t)handmade_find(
					   &made, "p10-77/s0.totals")
					   ->data)
					  ->count;
		for (size_t w = 0; w < count; w++) {
			uint64_t old = *words[w];

			*words[w] = absurd[i];
			open_and_walk(&made);
			*words[w] = old;
		}
		/* Head, floor and length together, so that they agree. */
		head->cap_rows = absurd[i] / 64;
		handmade_live(head)->head = absurd[i] / 64;
		open_and_walk(&made);
		handmade_open(head)->depth = 1000000;
		open_and_walk(&made);
		handmade_free(&made);
	}
}

static void memory_stayed_bounded(void **state)
{
	struct rusage usage;

	(void)state;
	getrusage(RUSAGE_SELF, &usage);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(usage.ru_maxrss < 64 * 1024);
#endif
}

static void the_same_file_claimed_twice_in_a_snapshot_counts_once(void **state)
{
	struct handmade made = { 0 };
	char directory[64], path[128];
	struct kymo_error err = { 0 };
	struct kymo_snapshot_head *head;
	struct kymo_snapshot_entry *entries;
	struct recording *recording;
	struct run_files source;
	size_t count;
	char *bytes;

	(void)state;
	handmade_all(&made);
	handmade_write(&made, handmade_mkdir(directory));
	snprintf(path, sizeof(path), "%s/x.ksnap", directory);
	assert_int_equal(kymo__snapshot_write(directory, NULL, path, &err), 0);
	bytes = read_whole(path, &count);
	head = (void *)bytes;
	entries = (void *)(bytes + head->toc_offset);
	for (uint64_t i = 1; i < head->count; i++) {
		entries[i].offset = entries[0].offset;
		entries[i].bytes = entries[0].bytes;
	}
	assert_int_equal(run_files_open_snapshot(&source, bytes, count, &err), 0);
	assert_int_equal(source.entry_count, 1);
	assert_int_equal(source.refused_entries, head->count - 1);
	assert_int_equal(inside_open(&source, "in memory", 1, &recording, &err), 0);
	assert_true(recording->partial);
	store_close(recording);
	free(bytes);
	handmade_rm(directory);
	handmade_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_flipped),
		cmocka_unit_test(every_file_cut_anywhere),
		cmocka_unit_test(every_byte_of_a_snapshot_flipped_or_cut),
		cmocka_unit_test(absurd_numbers_are_refused_at_once),
		cmocka_unit_test(the_same_file_claimed_twice_in_a_snapshot_counts_once),
		cmocka_unit_test(memory_stayed_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
