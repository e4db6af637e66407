/* What collect reads as text: budgets, /proc. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/budget.h"
#include "collect/host/host.h"
#include "collect/host/host_memory.h"
#include "collect/host/proc.h"

static void budgets_name_what_they_mean(void **state)
{
	static const struct {
		const char *text;
		uint64_t memory, disk;
	} cases[] = {
		{ "2G", 2ull << 30, 7 },
		{ "2g", 2ull << 30, 7 },
		{ "64MiB", 64ull << 20, 7 },
		{ "1048576", 1ull << 20, 7 },
		{ "disk=10G", 5, 10ull << 30 },
		{ "mem=1G,disk=4G", 1ull << 30, 4ull << 30 },
		{ "disk=1T,mem=3MB", 3ull << 20, 1ull << 40 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct budget budget = { 5, 7 };

		assert_int_equal(budget_parse(cases[i].text, &budget, NULL), 0);
		assert_true(budget.memory_bytes == cases[i].memory &&
			    budget.disk_bytes == cases[i].disk);
	}
}

static void bad_budgets_change_nothing_and_say_why(void **state)
{
	static const char *const bad[] = { "",
					   "G",
					   "1X",
					   "1G,",
					   ",1G",
					   "mem=",
					   "memory=1G",
					   "-1G",
					   "1.5G",
					   "1GG",
					   "1K",
					   "0",
					   "99999999999999999999",
					   "18446744073709551615T",
					   "mem=1G disk=2G",
					   "1 G" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct budget budget = { 5, 7 };
		struct kymo_error err = { 0 };

		assert_true(budget_parse(bad[i], &budget, &err) < 0);
		assert_true(budget.memory_bytes == 5 && budget.disk_bytes == 7);
		assert_true(strlen(err.text) > 10);
	}
}

static void a_budget_reads_back_as_it_was_written(void **state)
{
	struct budget budget = { 123456789, 987654321 }, again = { 0, 0 };
	char text[96];

	(void)state;
	budget_format(&budget, text, sizeof(text));
	assert_int_equal(budget_parse(text, &again, NULL), 0);
	assert_true(again.memory_bytes == 123456789 && again.disk_bytes == 987654321);
}

static void a_program_may_be_called_anything(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(
		proc_parse_stat(
			"42 (a) R 7 (b) S 41 40 39 0 -1 4194560 100 0 3 0 11 22 0 0 20 0 5 0 "
			"12345 409600 10 "
			"18446744073709551615 1",
			&stat),
		0);
	assert_int_equal(stat.pid, 42);
	assert_string_equal(stat.name, "a) R 7 (b");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.ppid, 41);
	assert_int_equal(stat.group, 40);
	assert_int_equal(stat.minor_faults, 100);
	assert_int_equal(stat.major_faults, 3);
	assert_int_equal(stat.user_ticks, 11);
	assert_int_equal(stat.system_ticks, 22);
	assert_int_equal(stat.threads, 5);
	assert_int_equal(stat.starttime, 12345);
	assert_int_equal(stat.vms_bytes, 409600);
	assert_int_equal(stat.rss_bytes, 10 * sysconf(_SC_PAGESIZE));
}

static void a_stat_that_is_cut_short_is_refused(void **state)
{
	static const char *const bad[] = { "",	     "42",	 "42 (a",
					   "42 (a)", "42 (a) S", "42 (a) S 1 2 3",
					   ")(",     "42 a) S 1" };
	struct proc_stat stat;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(proc_parse_stat(bad[i], &stat), -EINVAL);
}

static void this_process_is_alive_and_another_life_of_its_pid_is_not(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(proc_stat(getpid(), &stat), 0);
	assert_true(proc_alive(getpid(), stat.starttime));
	assert_false(proc_alive(getpid(), stat.starttime + 1));
	assert_true(proc_alive_elsewhere(getpid(), stat.starttime));
	assert_false(proc_alive_elsewhere(INT32_MAX, stat.starttime));
}

static void fields_are_found_at_the_start_of_a_line_only(void **state)
{
	(void)state;
	assert_int_equal(proc_field("rchar: 1\nread_bytes: 42\nxread_bytes: 3\n", "read_bytes:", 9),
			 42);
	assert_int_equal(proc_field("xread_bytes: 3\n", "read_bytes:", 9), 9);
	assert_int_equal(proc_field("", "read_bytes:", 9), 9);
}

static void cpus_and_interfaces_are_told_apart_from_headings(void **state)
{
	struct host_cpu cpu;
	uint64_t rx, tx;
	char name[16];

	(void)state;
	assert_int_equal(host_parse_cpu("cpu  10 20 30 40 50 60 70 80 90 100\n", &cpu), -1);
	assert_true(cpu.all == 360 && cpu.iowait == 50 && cpu.busy == 270);
	assert_int_equal(host_parse_cpu("cpu13 1 1 1 1 1 1 1 1\n", &cpu), 13);
	assert_int_equal(host_parse_cpu("intr 1 2 3\n", &cpu), -2);
	assert_int_equal(host_parse_cpu("cpu999999 1 1 1 1 1 1 1 1\n", &cpu), -2);
	assert_int_equal(host_parse_interface("  eth0: 100 1 0 0 0 0 0 0 200 1 0 0\n", name,
					      sizeof(name), &rx, &tx),
			 0);
	assert_string_equal(name, "eth0");
	assert_true(rx == 100 && tx == 200);
	assert_int_equal(host_parse_interface("Inter-|   Receive    \n face |x:\n", name,
					      sizeof(name), &rx, &tx),
			 -1);
	assert_int_equal(
		host_parse_interface("an-interface-too-long: 1\n", name, sizeof(name), &rx, &tx),
		-1);
}

static void memory_is_the_second_number_of_statm(void **state)
{
	(void)state;
	assert_int_equal(host_memory_parse("2143 312 288 5 0 98 0\n"),
			 312 * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_int_equal(host_memory_parse("0 0 0 0 0 0 0\n"), 0); /* a zombie */
	assert_int_equal(host_memory_parse(""), 0);
	assert_int_equal(host_memory_parse("2143"), 0);
	assert_int_equal(host_memory_parse("x 1"), 0);
	assert_int_equal(host_memory_parse("1 99999999999999999999"), 0);
}

static void memory_is_read_often_at_first_and_less_while_it_stays(void **state)
{
	(void)state;
	assert_int_equal(host_memory_pause(0, 0), HOST_MEMORY_FIRST_NS);
	assert_int_equal(host_memory_pause(0, UINT64_MAX), HOST_MEMORY_NS);
	assert_int_equal(host_memory_pause(HOST_MEMORY_FIRST_FOR_NS, 0), HOST_MEMORY_NS);
	assert_int_equal(host_memory_pause(HOST_MEMORY_FIRST_FOR_NS, 5), 2 * HOST_MEMORY_NS);
	assert_int_equal(host_memory_pause(UINT64_MAX, UINT64_MAX), HOST_MEMORY_SLOWEST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budgets_name_what_they_mean),
		cmocka_unit_test(bad_budgets_change_nothing_and_say_why),
		cmocka_unit_test(a_budget_reads_back_as_it_was_written),
		cmocka_unit_test(a_program_may_be_called_anything),
		cmocka_unit_test(a_stat_that_is_cut_short_is_refused),
		cmocka_unit_test(this_process_is_alive_and_another_life_of_its_pid_is_not),
		cmocka_unit_test(fields_are_found_at_the_start_of_a_line_only),
		cmocka_unit_test(cpus_and_interfaces_are_told_apart_from_headings),
		cmocka_unit_test(memory_is_the_second_number_of_statm),
		cmocka_unit_test(memory_is_read_often_at_first_and_less_while_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
