/* Finding, naming and removing recordings. */
#include "handmade.h"

#include <time.h>

#include <cmocka.h>

#include "base/files/paths.h"
#include "record/snapshot.h"
#include "store/discover.h"

static char place[64], root[80], work[80], home[80];

static int setup(void **state)
{
	(void)state;
	handmade_mkdir(place);
	snprintf(root, sizeof(root), "%s/kept", place);
	snprintf(work, sizeof(work), "%s/work", place);
	snprintf(home, sizeof(home), "%s/home", place);
	mkdir(root, 0700);
	mkdir(work, 0700);
	mkdir(home, 0700);
	setenv("KYMO_DIR", root, 1);
	setenv("XDG_STATE_HOME", home, 1);
	return chdir(work);
}

static int teardown(void **state)
{
	(void)state;
	if (chdir("/"))
		return -1;
	handmade_rm(place);
	return 0;
}

/* A run of one process that began so many seconds after another epoch; live: it is this process. */
static void make_run(const char *directory, const char *name, int seconds, bool live)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;
	char path[256];

	handmade_small(&made, 100);
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	run->epoch.realtime_ns += (uint64_t)seconds * 1000000000u;
	run->target_pid = 4000000 + seconds;
	if (live) {
		struct kymo_control *control =
			(void *)(uintptr_t)handmade_find(&made, "p10-77/control")->data;

		control->pid = run->target_pid = getpid();
		control->starttime = run->target_starttime = paths_starttime(getpid());
		run->boot_id[0] = '\0';
	}
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	handmade_write(&made, path);
	handmade_free(&made);
}

static void all_places_are_listed_live_first_then_newest(void **state)
{
	struct store_entry *entries;
	struct kymo_error err = { 0 };
	size_t count;
	char elsewhere[128];

	(void)state;
	make_run(root, "a", 1, false);
	make_run(work, "b", 3, false);
	make_run(work, "c", 2, true);
	make_run(place, "d", 4, false);
	snprintf(elsewhere, sizeof(elsewhere), "%s/d", place);
	assert_int_equal(store_remember(elsewhere, &err), 0);
	assert_int_equal(store_remember(elsewhere, &err), 0);
	mkdir("not-a-recording", 0700);
	assert_int_equal(store_list(&entries, &count, &err), 0);
	assert_int_equal(count, 4);
	assert_non_null(strstr(entries[0].path, "work/c"));
	assert_int_equal(entries[0].state, STORE_LIVE);
	assert_int_equal(entries[0].pid, getpid());
	assert_non_null(strstr(entries[1].path, "/d"));
	assert_non_null(strstr(entries[2].path, "work/b"));
	assert_non_null(strstr(entries[3].path, "kept/a"));
	assert_string_equal(entries[3].program, "train.py");
	assert_true(entries[3].bytes > 100000);
	free(entries);
}

static void two_halves_are_one_entry_with_the_path_on_disk(void **state)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;
	struct store_entry *entries;
	struct kymo_error err = { 0 };
	char live[128], disk[128];
	size_t count;

	(void)state;
	snprintf(live, sizeof(live), "%s/x", root);
	snprintf(disk, sizeof(disk), "%s/x", work);
	handmade_small(&made, 100);
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	strcpy(run->peer, disk);
	handmade_write(&made, live);
	strcpy(run->peer, live);
	handmade_write_some(&made, disk, "run");
	assert_int_equal(store_list(&entries, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(entries[0].path, disk);
	free(entries);
	assert_int_equal(store_remove(disk, &err), 0);
	assert_int_not_equal(access(live, F_OK), 0);
	assert_int_not_equal(access(disk, F_OK), 0);
	handmade_free(&made);
}

static void an_unreadable_recording_is_listed_with_the_reason(void **state)
{
	struct handmade made = { 0 };
	struct store_entry *entries;
	struct kymo_error err = { 0 };
	size_t count;

	(void)state;
	handmade_run(&made)->file.version = 9;
	handmade_write(&made, "newer");
	assert_int_equal(store_list(&entries, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_non_null(strstr(entries[0].unreadable, "version 9"));
	free(entries);
	handmade_free(&made);
}

static void a_target_is_latest_a_pid_a_name_or_a_path(void **state)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	(void)state;
	assert_int_equal(store_resolve(NULL, path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "there are no recordings"));
	make_run(root, "train-a", 1, false);
	make_run(work, "train-b", 2, false);
	assert_int_equal(store_resolve(NULL, path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/train-b"));
	assert_int_equal(store_resolve("latest", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/train-b"));
	assert_int_equal(store_resolve("4000001", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "kept/train-a"));
	assert_int_equal(rename("train-b/p10-77", "train-b/p4000010-77"), 0);
	assert_int_equal(store_resolve("4000010", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/train-b"));
	assert_int_equal(store_resolve("train-a", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "kept/train-a"));
	assert_int_equal(store_resolve("./train-b", path, sizeof(path), &err), 0);
	assert_string_equal(path, "./train-b");
	assert_int_equal(store_resolve("trian-a", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean"));
	assert_int_equal(store_resolve("something-else", path, sizeof(path), &err), -ENOENT);
	assert_string_equal(err.text, "no recording 'something-else'; `kymo ls` lists them");
	assert_int_equal(store_resolve("3999999", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "there is no process"));
	assert_int_equal(store_resolve("1", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "does not record"));
}

/* A run that was given a name, which is not its directory's. */
static void make_named(const char *directory, const char *name, int seconds)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;

	handmade_small(&made, 100);
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	run->epoch.realtime_ns += (uint64_t)seconds * 1000000000u;
	run->target_pid = 4000000 + seconds;
	strcpy(run->name, name);
	handmade_write(&made, directory);
	handmade_free(&made);
}

static void a_name_that_runs_were_given_means_the_newest_of_them(void **state)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	(void)state;
	make_named("kymo-before-1", "before", 1);
	make_named("kymo-before-3", "before", 3);
	make_named("kymo-before-2", "before", 2);
	make_named("kymo-after-4", "after", 4);
	make_named("kymo-latest-0", "latest", 0);
	assert_int_equal(store_resolve("before", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/kymo-before-3"));
	assert_int_equal(store_resolve("after", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/kymo-after-4"));
	assert_int_equal(store_resolve("latest", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/kymo-after-4"));
	assert_int_equal(store_resolve("pid 4000002", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/kymo-before-2"));
	assert_int_equal(store_resolve("befroe", path, sizeof(path), &err), -ENOENT);
	assert_string_equal(err.text,
			    "no recording 'befroe'; did you mean before? `kymo ls` lists them");
	/* What is there by that path wins. */
	make_run(work, "before", 0, false);
	assert_int_equal(store_resolve("before", path, sizeof(path), &err), 0);
	assert_string_equal(path, "before");
}

static void what_is_removed_by_a_name_is_the_only_one_that_has_it(void **state)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	(void)state;
	make_named("a", "twice", 1);
	make_named("b", "twice", 2);
	make_named("c", "once", 3);
	assert_int_equal(store_resolve_only("once", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/c"));
	assert_int_equal(store_resolve_only("twice", path, sizeof(path), &err), -EINVAL);
	assert_non_null(strstr(
		err.text, "2 recordings are named twice; give a path instead, the newest is "));
	assert_non_null(strstr(err.text, "work/b"));
	assert_int_equal(store_resolve_only("4000001", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/a"));
}

/* The first run is over, and was of a process that had the pid of this one; then this one is
   watched from outside. */
static void a_pid_that_was_used_again_is_of_the_process_that_runs(void **state)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES], pid[16];

	(void)state;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	handmade_small(&made, 100);
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	run->target_pid = getpid();
	run->target_starttime = paths_starttime(getpid()) - 1;
	handmade_write(&made, "before");
	assert_int_equal(store_resolve(pid, path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "does not record"));
	run->target_starttime = paths_starttime(getpid());
	run->epoch.realtime_ns -= 1000000000u;
	handmade_write(&made, "now");
	assert_int_equal(store_resolve(pid, path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/now"));
	handmade_free(&made);
}

static void latest_is_a_run_rather_than_a_snapshot_of_it(void **state)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	(void)state;
	make_run(root, "z", 4, false);
	assert_int_equal(kymo__snapshot_write("../kept/z", NULL, "a.kymo", &err), 0);
	assert_int_equal(store_resolve("latest", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "kept/z"));
	assert_int_equal(store_remove("../kept/z", &err), 0);
	assert_int_equal(store_resolve("latest", path, sizeof(path), &err), 0);
	assert_non_null(strstr(path, "work/a.kymo"));
}

static void a_process_directory_stands_for_its_run(void **state)
{
	struct recording *recording;
	struct kymo_error err = { 0 };

	(void)state;
	make_run(work, "b", 3, false);
	assert_int_equal(store_open("b/p10-77", &recording, &err), 0);
	assert_int_equal(recording->process_count, 1);
	assert_int_equal(recording->run.target_pid, 4000003);
	store_close(recording);
}

static void only_what_is_ours_is_removed(void **state)
{
	struct kymo_error err = { 0 };
	FILE *file;

	(void)state;
	make_run(work, "b", 3, false);
	file = fopen("b/notes.txt", "w");
	fputs("mine", file);
	fclose(file);
	assert_int_equal(symlink("/etc/passwd", "b/p10-77/s9.0"), 0);
	assert_int_equal(store_remove("b", &err), -ENOTEMPTY);
	assert_non_null(strstr(err.text, "it has 1 files that are not kymo's"));
	assert_int_equal(access("b/notes.txt", F_OK), 0);
	assert_int_not_equal(access("b/run", F_OK), 0);
	assert_int_not_equal(access("b/p10-77", F_OK), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);

	mkdir("other", 0700);
	assert_int_equal(store_remove("other", &err), -EINVAL);
	assert_int_equal(store_remove("missing", &err), -ENOENT);
	assert_non_null(strstr(err.text, "no recording 'missing'"));
	/* A name like ours in a directory that is not ours. */
	mkdir("other/p1-2", 0700);
	file = fopen("other/p1-2/control", "w");
	fputs("something", file);
	fclose(file);
	assert_int_equal(store_remove("other", &err), -EINVAL);
	assert_int_equal(access("other/p1-2/control", F_OK), 0);
}

static void a_live_recording_is_not_removed(void **state)
{
	struct kymo_error err = { 0 };

	(void)state;
	make_run(root, "live", 3, true);
	assert_int_equal(store_remove(strcat(root, "/live"), &err), -EBUSY);
	assert_non_null(strstr(err.text, "is still being recorded"));
	assert_int_equal(access("../kept/live/run", F_OK), 0);
}

static void snapshots_are_found_by_content_and_removed(void **state)
{
	struct store_entry *entries;
	struct kymo_error err = { 0 };
	size_t count;
	FILE *file;

	(void)state;
	make_run(place, "d", 4, false);
	assert_int_equal(kymo__snapshot_write("../d", NULL, "x.kymo", &err), 0);
	file = fopen("y.kymo", "w");
	fputs("something else", file);
	fclose(file);
	assert_int_equal(store_list(&entries, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(entries[0].kind, STORE_SNAPSHOT);
	assert_int_equal(entries[0].state, STORE_ENDED);
	assert_string_equal(entries[0].program, "train.py");
	assert_int_equal(entries[0].pid, 4000004);
	free(entries);
	assert_int_equal(store_remove("y.kymo", &err), -EINVAL);
	assert_int_equal(store_remove("x.kymo", &err), 0);
	assert_int_not_equal(access("x.kymo", F_OK), 0);
}

static void pruning_removes_the_oldest_dead_ones_until_the_rest_fits(void **state)
{
	struct store_entry one;
	struct kymo_error err = { 0 };
	size_t count;
	struct store_entry *entries;

	(void)state;
	make_run(root, "oldest", 1, true);
	make_run(root, "older", 2, false);
	make_run(root, "newer", 3, false);
	assert_int_equal(store_prune(), 0);
	assert_int_equal(store_list(&entries, &count, &err), 0);
	assert_int_equal(count, 3);
	one = entries[1];
	free(entries);
	assert_int_equal(discover_prune(root, one.bytes), 1);
	assert_int_equal(access("../kept/oldest/run", F_OK), 0);
	assert_int_not_equal(access("../kept/older", F_OK), 0);
	assert_int_equal(access("../kept/newer/run", F_OK), 0);
}

static void pruning_leaves_the_half_on_disk(void **state)
{
	struct handmade made = { 0 };
	struct kymo_run_file *run;
	char live[128], disk[128];

	(void)state;
	snprintf(live, sizeof(live), "%s/x", root);
	snprintf(disk, sizeof(disk), "%s/x", work);
	handmade_small(&made, 100);
	run = (void *)(uintptr_t)handmade_find(&made, "run")->data;
	strcpy(run->peer, disk);
	handmade_write(&made, live);
	strcpy(run->peer, live);
	handmade_write_some(&made, disk, "run");
	assert_int_equal(discover_prune(root, 0), 1);
	assert_int_not_equal(access(live, F_OK), 0);
	assert_int_equal(access("x/run", F_OK), 0);
	handmade_free(&made);
}

static void removed_recordings_leave_the_index(void **state)
{
	struct kymo_error err = { 0 };
	char path[160], text[256] = "";
	FILE *file;

	(void)state;
	make_run(work, "b", 3, false);
	make_run(work, "c", 3, false);
	assert_int_equal(store_remember("b", &err), 0);
	assert_int_equal(store_remember("c", &err), 0);
	assert_int_equal(store_remove("b", &err), 0);
	snprintf(path, sizeof(path), "%s/kymo/index", home);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_non_null(strstr(text, "work/c\n"));
	assert_null(fgets(text, sizeof(text), file));
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_places_are_listed_live_first_then_newest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(two_halves_are_one_entry_with_the_path_on_disk,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_unreadable_recording_is_listed_with_the_reason,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_target_is_latest_a_pid_a_name_or_a_path, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_name_that_runs_were_given_means_the_newest_of_them, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_removed_by_a_name_is_the_only_one_that_has_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_pid_that_was_used_again_is_of_the_process_that_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(latest_is_a_run_rather_than_a_snapshot_of_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_directory_stands_for_its_run, setup,
						teardown),
		cmocka_unit_test_setup_teardown(only_what_is_ours_is_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_live_recording_is_not_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(snapshots_are_found_by_content_and_removed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			pruning_removes_the_oldest_dead_ones_until_the_rest_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(pruning_leaves_the_half_on_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(removed_recordings_leave_the_index, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
