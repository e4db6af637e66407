/* What the kernel says of threads and control groups: its texts, taken apart. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/host/cgroup.h"
#include "collect/host/host_threads.h"

static void schedstat_is_run_wait_and_slices(void **state)
{
	struct host_threads_schedule schedule = { 0 };

	(void)state;
	assert_true(host_threads_parse_schedstat("1163294318 2400111 77\n", &schedule));
	assert_int_equal(schedule.run_ns, 1163294318);
	assert_int_equal(schedule.delay_ns, 2400111);
	assert_int_equal(schedule.slices, 77);
	assert_false(host_threads_parse_schedstat("", &schedule));
	assert_false(host_threads_parse_schedstat("12 13", &schedule));
	assert_false(host_threads_parse_schedstat("x y z", &schedule));
}

static void states_are_words(void **state)
{
	(void)state;
	assert_string_equal(host_threads_state_word('R'), "running");
	assert_string_equal(host_threads_state_word('D'), "blocked");
	assert_string_equal(host_threads_state_word('?'), "?");
}

static void a_process_is_in_groups_of_both_versions(void **state)
{
	struct cgroup_paths paths;

	(void)state;
	cgroup_parse_paths("0::/user.slice/user-1000.slice/session-2.scope\n", &paths);
	assert_string_equal(paths.unified, "/user.slice/user-1000.slice/session-2.scope");
	assert_string_equal(paths.memory, "");
	cgroup_parse_paths("9:name=systemd:/\n4:memory:/docker/a:b\n2:cpuacct:/x\n"
			   "1:cpuset,cpu,net_cls:/docker\n0::/\n",
			   &paths);
	assert_string_equal(paths.memory, "/docker/a:b");
	assert_string_equal(paths.cpu, "/docker");
	assert_string_equal(paths.unified, "/");
	/* Outside of our namespace, too long, cut, nothing. */
	cgroup_parse_paths("0::/../../other", &paths);
	assert_string_equal(paths.unified, "/");
	cgroup_parse_paths("0:", &paths);
	assert_string_equal(paths.unified, "");
	cgroup_parse_paths("", &paths);
	assert_string_equal(paths.unified, "");
}

static void pressure_is_the_total_of_some_and_full(void **state)
{
	struct cgroup_pressure pressure;

	(void)state;
	cgroup_parse_pressure("some avg10=62.26 avg60=69.08 avg300=41.55 total=440860973\n"
			      "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n",
			      &pressure);
	assert_int_equal(pressure.some_us, 440860973);
	assert_int_equal(pressure.full_us, 17);
	cgroup_parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", &pressure);
	assert_int_equal(pressure.some_us, 5);
	assert_true(pressure.full_us == CGROUP_NONE);
	cgroup_parse_pressure("some avg10=0.00\nfull total=9", &pressure);
	assert_true(pressure.some_us == CGROUP_NONE);
	assert_int_equal(pressure.full_us, 9);
}

static void limits_are_numbers_or_none(void **state)
{
	(void)state;
	assert_int_equal(cgroup_parse_limit("536870912\n"), 536870912);
	assert_true(cgroup_parse_limit("max\n") == CGROUP_NONE);
	assert_true(cgroup_parse_limit("9223372036854771712\n") == CGROUP_NONE);
	assert_true(cgroup_parse_limit("") == CGROUP_NONE);
	assert_true(cgroup_parse_cpu_max("150000 100000\n") == 1.5);
	assert_true(cgroup_parse_cpu_max("max 100000\n") == 0);
	assert_true(cgroup_parse_cpu_max("150000") == 0);
}

/* ---- a tree as the kernel would show it ---- */

static char root[64];

static void put(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/kymo-cgroup-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command);
}

static void version_2_is_read_and_the_smallest_limit_above_holds(void **state)
{
	struct cgroup_paths paths = { .unified = "/pod/app" };
	struct cgroup_reading reading;

	(void)state;
	put("memory.stat", "");
	put("pod/memory.max", "1000000000\n");
	put("pod/cpu.max", "400000 100000\n");
	put("pod/app/memory.current", "123456\n");
	put("pod/app/memory.max", "max\n");
	put("pod/app/cpu.max", "max 100000\n");
	put("pod/app/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 20\n");
	put("pod/app/memory.pressure", "some avg10=0 avg60=0 avg300=0 total=7\n"
				       "full avg10=0 avg60=0 avg300=0 total=2\n");
	cgroup_read(root, &paths, &reading);
	assert_int_equal(reading.memory_bytes, 123456);
	assert_int_equal(reading.memory_limit_bytes, 1000000000);
	assert_true(reading.cpu_limit == 4.0);
	assert_int_equal(reading.throttled_count, 3);
	assert_int_equal(reading.throttled_ns, 20000);
	assert_int_equal(reading.pressure[CGROUP_MEMORY].some_us, 7);
	assert_int_equal(reading.pressure[CGROUP_MEMORY].full_us, 2);
	assert_true(reading.pressure[CGROUP_IO].some_us == CGROUP_NONE);
}

static void version_1_is_read_beside_an_empty_version_2(void **state)
{
	struct cgroup_paths paths = { .unified = "/", .memory = "/m/x", .cpu = "/c" };
	struct cgroup_reading reading, again;
	uint32_t told;

	(void)state;
	put("unified/cgroup.procs", "");
	put("memory/m/memory.limit_in_bytes", "5000\n");
	put("memory/m/x/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/m/x/memory.usage_in_bytes", "4000\n");
	put("cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n");
	put("cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
	put("cpu,cpuacct/c/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 77\n");
	put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	put("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	cgroup_read(root, &paths, &reading);
	assert_int_equal(reading.memory_bytes, 4000);
	assert_int_equal(reading.memory_limit_bytes, 5000);
	assert_true(reading.cpu_limit == 0.5);
	assert_int_equal(reading.throttled_count, 4);
	assert_int_equal(reading.throttled_ns, 77);
	told = cgroup_read_some(root, &paths, CGROUP_ALL_HIERARCHIES, &reading);
	assert_int_equal(told, 1u << 2 | 1u << 4); /* memory, and cpu,cpuacct */
	assert_int_equal(cgroup_read_some(root, &paths, told, &again), told);
	assert_memory_equal(&again, &reading, sizeof(again));
	assert_int_equal(cgroup_read_some(root, &paths, 0, &again), 0);
	assert_true(again.memory_bytes == CGROUP_NONE);
}

/* A container's process has a path of the host's; what is mounted here is its own group. */
static void a_path_that_is_not_there_means_the_root(void **state)
{
	struct cgroup_paths paths = { .unified = "/kubepods/burstable/pod1" };
	struct cgroup_reading reading;

	(void)state;
	put("memory.current", "99\n");
	put("memory.max", "100\n");
	cgroup_read(root, &paths, &reading);
	assert_int_equal(reading.memory_bytes, 99);
	assert_int_equal(reading.memory_limit_bytes, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedstat_is_run_wait_and_slices),
		cmocka_unit_test(states_are_words),
		cmocka_unit_test(a_process_is_in_groups_of_both_versions),
		cmocka_unit_test(pressure_is_the_total_of_some_and_full),
		cmocka_unit_test(limits_are_numbers_or_none),
		cmocka_unit_test_setup_teardown(
			version_2_is_read_and_the_smallest_limit_above_holds, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(version_1_is_read_beside_an_empty_version_2,
						make_root, remove_root),
		cmocka_unit_test_setup_teardown(a_path_that_is_not_there_means_the_root, make_root,
						remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
