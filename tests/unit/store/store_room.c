/* Memory follows what is stored: holes of sparse files are not copied, and a limit keeps the newest
   rows. */
#include "handmade_claims.h"

#include "base/files/stream_image.h"

static char said[512];

static void keep_sentence(void *context, const char *sentence)
{
	(void)context;
	snprintf(said, sizeof(said), "%s", sentence);
}

static int take_within(struct handmade *made, struct stream_image *image, uint64_t *room)
{
	const struct stream_image_sink sink = { keep_sentence, NULL, room };
	struct run_files source;

	said[0] = '\0';
	run_files_open_blobs(&source, made->files, made->count);
	return stream_image_take(image, &source, "p10-77", 0, &sink, NULL);
}

static void a_ring_that_exceeds_the_room_keeps_its_newest_rows_and_says_so(void **state)
{
	struct handmade made = { 0 };
	struct stream_image image;
	struct kymo_zone_row row;
	uint64_t room = sizeof(image) + 8192, most = room / sizeof(row);

	(void)state;
	handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	handmade_ring(&made, "p10-77", 0, 4000);
	assert_true(most < 4000);
	assert_int_equal(take_within(&made, &image, &room), 0);
	assert_int_equal(image.kept, most);
	assert_int_equal(image.runs[0].first_row, 4000 - most);
	assert_int_equal(stream_image_rows(&image, 3999, 1, &row), 1);
	assert_true(handmade_row_is(&row, 3999));
	assert_non_null(strstr(said, "rows are left out: the recording needs more memory"));
	assert_int_equal(room, 0);
	stream_image_free(&image);
	handmade_free(&made);
}

static void streams_beyond_the_room_are_left_out(void **state)
{
	struct handmade made = { 0 };
	struct stream_image image;
	uint64_t room = 100;

	(void)state;
	handmade_run(&made);
	handmade_ring(&made, "p10-77", 0, 40);
	assert_int_equal(take_within(&made, &image, &room), -ENOMEM);
	handmade_free(&made);
}

/* Two stored blocks in a file of 64 MB. */
static int sparse_file(char path[64])
{
	int fd;

	handmade_mkdir(path);
	strcat(path, "/file");
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 64 << 20) || pwrite(fd, "a", 1, 0) != 1 ||
	    pwrite(fd, "b", 1, 32 << 20) != 1)
		abort();
	return fd;
}

static void holes_of_a_file_are_skipped_and_read_as_zeros(void **state)
{
	char path[64], *memory = calloc(1, 64 << 20);
	struct readat file = { .fd = sparse_file(path), .whole = true };
	uint64_t from, to;

	(void)state;
	assert_true(readat_stored(&file, 0, 64 << 20, &from, &to));
	assert_int_equal(from, 0);
	if (to == 64 << 20)
		skip(); /* a file system without holes */
	assert_true(to <= 2 << 20);
	assert_true(readat_stored(&file, to, 64 << 20, &from, &to));
	assert_true(from <= 32 << 20 && to > 32 << 20);
	assert_false(readat_stored(&file, to, 64 << 20, &from, &to));
	assert_int_equal(readat_copy_stored(&file, 0, memory, 80 << 20), 64 << 20);
	assert_int_equal(memory[0], 'a');
	assert_int_equal(memory[32 << 20], 'b');
	assert_int_equal(memory[1], 0);
	close(file.fd);
	free(memory);
	*strrchr(path, '/') = '\0';
	handmade_rm(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_that_exceeds_the_room_keeps_its_newest_rows_and_says_so),
		cmocka_unit_test(streams_beyond_the_room_are_left_out),
		cmocka_unit_test(holes_of_a_file_are_skipped_and_read_as_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
