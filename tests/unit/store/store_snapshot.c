/* Snapshots: the same as the directory they were taken of, and nothing half done on disk. */
#include "handmade.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "record/snapshot.h"

static void assert_streams_equal(const struct recording *a, const struct recording *b)
{
	assert_int_equal(a->stream_count, b->stream_count);
	for (size_t i = 0; i < a->stream_count; i++) {
		const struct store_stream *left = &a->streams[i], *right = &b->streams[i];

		assert_string_equal(left->table, right->table);
		assert_int_equal(left->emitted, right->emitted);
		assert_int_equal(left->kept, right->kept);
		assert_int_equal(left->overwritten, right->overwritten);
		assert_int_equal(left->dropped_total, right->dropped_total);
		assert_int_equal(left->keep, right->keep);
		assert_int_equal(left->untotalled, right->untotalled);
		assert_memory_equal(left->columns, right->columns, sizeof(left->columns));
		assert_int_equal(left->open_count, right->open_count);
		for (size_t z = 0; z < left->open_count; z++)
			assert_memory_equal(&left->open_zones[z], &right->open_zones[z],
					    sizeof(left->open_zones[z]));
		assert_int_equal(left->total_count, right->total_count);
		for (size_t t = 0; t < left->total_count; t++) {
			assert_int_equal(left->totals[t].count, right->totals[t].count);
			assert_int_equal(left->totals[t].sum_ticks, right->totals[t].sum_ticks);
			assert_int_equal(left->totals[t].child_ticks, right->totals[t].child_ticks);
			assert_int_equal(left->totals[t].min_ticks, right->totals[t].min_ticks);
			assert_int_equal(left->totals[t].max_ticks, right->totals[t].max_ticks);
			assert_memory_equal(left->totals[t].histogram, right->totals[t].histogram,
					    KYMO_HIST_BYTES);
		}
	}
}

static uint64_t all_rows(const struct store_stream *stream, struct kymo_zone_row *out)
{
	uint64_t done = 0;

	for (size_t c = 0; c < stream->chunk_count; c++)
		done += store_read_rows(stream, &stream->chunks[c], 0, stream->chunks[c].rows,
					out + done);
	return done;
}

static void assert_recordings_equal(const struct recording *a, const struct recording *b)
{
	static struct kymo_zone_row left[20000], right[20000];

	assert_string_equal(a->program, b->program);
	assert_string_equal(a->command, b->command);
	assert_int_equal(a->duration_ns, b->duration_ns);
	assert_int_equal(a->process_count, b->process_count);
	assert_int_equal(a->name_count, b->name_count);
	assert_int_equal(a->thread_count, b->thread_count);
	for (size_t i = 0; i < a->name_count; i++)
		assert_string_equal(a->names[i].text, b->names[i].text);
	for (size_t i = 0; i < a->process_count; i++) {
		assert_int_equal(a->processes[i].state, b->processes[i].state);
		assert_int_equal(a->processes[i].ended_ns, b->processes[i].ended_ns);
		assert_memory_equal(&a->processes[i].clock, &b->processes[i].clock,
				    sizeof(struct store_clock));
	}
	assert_streams_equal(a, b);
	for (size_t i = 0; i < a->stream_count; i++) {
		uint64_t count = all_rows(&a->streams[i], left);

		assert_int_equal(count, a->streams[i].kept);
		assert_int_equal(all_rows(&b->streams[i], right), count);
		assert_memory_equal(left, right, count * sizeof(left[0]));
	}
}

static void make_two_processes(struct handmade *made)
{
	struct kymo_open_stack *open = handmade_open(handmade_small(made, 10000));
	struct kymo_stream_head *chain;

	open->depth = 1;
	open->entries[0] = (struct kymo_open_entry){ HANDMADE_EPOCH + 2000, 3, 0 };
	handmade_control(made, "p12-77", 12);
	handmade_names(made, "p12-77", handmade_words);
	handmade_threads(made, "p12-77", 13);
	chain = handmade_chain(made, "p12-77", 3, 1, 4, 1000, 4700);
	handmade_totals(made, "p12-77", chain, 4608);
	handmade_live(chain)->dropped[KYMO_DROP_FULL] = 17;
}

static void a_snapshot_is_the_same_as_its_directory(void **state)
{
	struct handmade made = { 0 };
	struct recording *directory, *snapshot;
	struct kymo_error err = { 0 };
	char path[64], file[128];
	struct stat st;

	(void)state;
	make_two_processes(&made);
	handmade_write(&made, handmade_mkdir(path));
	snprintf(file, sizeof(file), "%s.ksnap", path);
	if (kymo__snapshot_write(path, NULL, file, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(store_kind(file, &err), STORE_SNAPSHOT);
	assert_int_equal(store_open(path, &directory, &err), 0);
	assert_int_equal(store_open(file, &snapshot, &err), 0);
	assert_false(directory->partial);
	assert_false(snapshot->partial);
	assert_recordings_equal(directory, snapshot);
	store_close(directory);
	store_close(snapshot);
	unlink(file);
	handmade_rm(path);
	handmade_free(&made);
}

static void a_snapshot_can_be_of_some_processes(void **state)
{
	static const char *const processes[] = { "p12-77", NULL };
	struct handmade made = { 0 };
	struct recording *snapshot;
	struct kymo_error err = { 0 };
	char path[64], file[128];

	(void)state;
	make_two_processes(&made);
	handmade_write(&made, handmade_mkdir(path));
	snprintf(file, sizeof(file), "%s/it.ksnap", path);
	assert_int_equal(kymo__snapshot_write(path, processes, file, &err), 0);
	assert_int_equal(store_open(file, &snapshot, &err), 0);
	assert_int_equal(snapshot->process_count, 1);
	assert_int_equal(snapshot->processes[0].pid, 12);
	assert_int_equal(snapshot->streams[0].kept, 3700);
	store_close(snapshot);
	handmade_rm(path);
	handmade_free(&made);
}

static void a_process_that_ran_is_shown_as_running_then(void **state)
{
	struct handmade made = { 0 };
	struct kymo_control *control;
	struct recording *snapshot;
	struct kymo_error err = { 0 };
	char path[64], file[128];
	struct stat ns;

	(void)state;
	handmade_small(&made, 10);
	control = (void *)(uintptr_t)handmade_find(&made, "p10-77/control")->data;
	control->pid = getpid();
	control->starttime = strtoull("0", NULL, 10);
	{
		FILE *stat_file = fopen("/proc/self/stat", "r");
		char text[1024], *at;

		assert_non_null(fgets(text, sizeof(text), stat_file));
		fclose(stat_file);
		at = strrchr(text, ')');
		for (int field = 2; field < 22; field++)
			at = strchr(at + 1, ' ');
		control->starttime = strtoull(at, NULL, 10);
	}
	assert_int_equal(stat("/proc/self/ns/pid", &ns), 0);
	control->pid_namespace = ns.st_ino;
	handmade_write(&made, handmade_mkdir(path));
	snprintf(file, sizeof(file), "%s/it.ksnap", path);
	assert_int_equal(kymo__snapshot_write(path, NULL, file, &err), 0);
	assert_int_equal(store_open(file, &snapshot, &err), 0);
	assert_int_equal(snapshot->processes[0].state, STORE_LIVE);
	assert_false(snapshot->live);
	store_close(snapshot);
	handmade_rm(path);
	handmade_free(&made);
}

static size_t files_in(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* In a child: RLIMIT_FSIZE stands for a full disk, and the signal that comes with it must not be
   sent. */
static int write_with_limit(const char *run, const char *file)
{
	const struct rlimit limit = { 20000, 20000 };
	int status;
	pid_t child = fork();

	if (!child) {
		struct kymo_error err = { 0 };
		int rc;

		setrlimit(RLIMIT_FSIZE, &limit);
		rc = kymo__snapshot_write(run, NULL, file, &err);
		_exit(rc == -EFBIG && strstr(err.text, "unchanged") ? 7 : 1);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void no_room_leaves_the_old_file_whole_and_no_half_file(void **state)
{
	struct handmade made = { 0 };
	char path[64], out[64], file[128], text[16] = "";
	FILE *old;

	(void)state;
	make_two_processes(&made);
	handmade_write(&made, handmade_mkdir(path));
	handmade_mkdir(out);
	snprintf(file, sizeof(file), "%s/it.ksnap", out);
	old = fopen(file, "w");
	fputs("old", old);
	fclose(old);
	assert_int_equal(write_with_limit(path, file), 7);
	assert_int_equal(files_in(out), 1);
	old = fopen(file, "r");
	assert_non_null(fgets(text, sizeof(text), old));
	fclose(old);
	assert_string_equal(text, "old");
	handmade_rm(path);
	handmade_rm(out);
	handmade_free(&made);
}

static void a_place_that_cannot_be_written_is_named(void **state)
{
	struct handmade made = { 0 };
	struct kymo_error err = { 0 };
	char path[64];

	(void)state;
	handmade_small(&made, 10);
	handmade_write(&made, handmade_mkdir(path));
	assert_int_equal(kymo__snapshot_write(path, NULL, "/nowhere/x.ksnap", &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot write the snapshot /nowhere/x.ksnap"));
	assert_int_equal(kymo__snapshot_write("/nowhere", NULL, "/dev/shm/x.ksnap", &err), -ENOENT);
	assert_int_not_equal(access("/dev/shm/x.ksnap", F_OK), 0);
	handmade_rm(path);
	handmade_free(&made);
}

static void a_process_that_does_not_record_says_so(void **state)
{
	struct kymo_error err = { 0 };

	(void)state;
	assert_int_equal(kymo_snapshot("/dev/shm/x.ksnap", &err), -ENODATA);
	assert_non_null(strstr(err.text, "does not record"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_snapshot_is_the_same_as_its_directory),
		cmocka_unit_test(a_snapshot_can_be_of_some_processes),
		cmocka_unit_test(a_process_that_ran_is_shown_as_running_then),
		cmocka_unit_test(no_room_leaves_the_old_file_whole_and_no_half_file),
		cmocka_unit_test(a_place_that_cannot_be_written_is_named),
		cmocka_unit_test(a_process_that_does_not_record_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
