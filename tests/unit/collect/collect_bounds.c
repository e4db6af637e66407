/* What a program can make the collector hold: descriptors, memory, time, entries of its tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dwarf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/perf/address_space.h"
#include "collect/perf/perf_events.h"
#include "collect/recent_stacks.h"
#include "collect/symbols/jit_map.h"
#include "collect/symbols/source_lines.h"

#define HANGS_SECONDS 60 /* of a test that would never end */

/* A child that waits to be killed, at the latest by the end of this process. */
static pid_t begin_child(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- source lines ---------------------------------------------------------------------------- */

static void no_lines(void *context, size_t index, const struct source_frame *frames, size_t count)
{
	(void)context, (void)index, (void)frames, (void)count;
	fail_msg("the child answers nothing");
}

/* A child that reads nothing and answers nothing, as one that libdw keeps busy. Returns its end of
   the socket. */
static int begin_silent_child(struct source_lines *lines)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	lines->child = begin_child();
	lines->fd = ends[0];
	return ends[1];
}

static void a_child_that_hangs_holds_no_one(void **state)
{
	struct source_lines lines = { 0 };
	const uint64_t addresses[2] = { 1, 2 };
	int asked = 0;

	(void)state;
	close(begin_silent_child(&lines));
	alarm(HANGS_SECONDS);
	for (int i = 0; i < 2000; i++)
		asked += source_lines_ask(&lines, 1, STDIN_FILENO, addresses, 2,
					  clock_monotonic_ns(), no_lines, NULL);
	alarm(0);
	assert_int_equal(asked, 1);
	source_lines_stop(&lines);
}

static void add_index(void *context, size_t index, const struct source_frame *frames, size_t count)
{
	(void)frames, (void)count;
	*(size_t *)context += index;
}

static void answers_that_are_late_are_taken(void **state)
{
	struct source_lines lines = { 0 };
	const uint64_t addresses[2] = { 1, 2 };
	struct source_question question;
	struct source_answer answer = { 0 };
	size_t indices = 0;
	int child;

	(void)state;
	child = begin_silent_child(&lines);
	assert_true(source_lines_ask(&lines, 1, STDIN_FILENO, addresses, 2, clock_monotonic_ns(),
				     no_lines, NULL));
	assert_int_equal(lines.owed, 2);
	assert_int_equal(recv(child, &question, sizeof(question), 0), sizeof(question));
	/* another question is not sent before they came, and they stay those of the first */
	assert_false(source_lines_ask(&lines, 1, STDIN_FILENO, addresses, 1, clock_monotonic_ns(),
				      no_lines, NULL));
	for (answer.index = 0; answer.index < 2; answer.index++) {
		answer.sequence = question.sequence;
		assert_int_equal(send(child, &answer, sizeof(answer), 0), sizeof(answer));
	}
	source_lines_late(&lines, clock_monotonic_ns() + 1000000000u, add_index, &indices);
	assert_int_equal(lines.owed, 0);
	assert_int_equal(indices, 0 + 1);
	close(child);
	source_lines_stop(&lines);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void a_process_that_is_added_later_has_no_fast_events(void **state)
{
	pid_t one = begin_child(), other = begin_child();
	struct kymo_error err = { 0 };
	struct perf_events events;
	int rc = perf_events_open_process(&events, one, 8192, &err);
	size_t slow;

	(void)state;
	if (!rc) {
		assert_true(events.fast_count > 0);
		slow = events.slow_count;
		perf_events_slow_down(&events);
		assert_int_equal(perf_events_add_process(&events, other, &err), 0);
		assert_int_equal(events.fast_count, 0);
		assert_int_equal(events.slow_count, 2 * slow);
		perf_events_close(&events);
	}
	end_child(one);
	end_child(other);
	if (rc)
		skip();
}

/* ---- Python stacks --------------------------------------------------------------------------- */

#define SECOND_NS 1000000000ull

static void threads_that_have_ended_leave_room(void **state)
{
	struct recent_stacks *recent = recent_stacks_create();
	const struct recent_frame frame = { .name = 1, .line = 1, .entry = true, .code = 64 };
	uint64_t at_ns = 100 * SECOND_NS;
	size_t one_hundred = 0, all;

	(void)state;
	for (int tid = 1; tid <= 20000; tid++, at_ns += SECOND_NS) {
		recent_stacks_add(recent, tid, at_ns, 1, &frame, 1);
		assert_true(recent_stacks_knows(recent, tid, at_ns));
		if (tid == 100)
			one_hundred = resident_bytes();
	}
	all = resident_bytes();
	assert_true(all < one_hundred + (10u << 20));
	recent_stacks_destroy(recent);
}

static void callers_are_learned_after_very_many_functions(void **state)
{
	struct recent_stacks *recent = recent_stacks_create();
	struct recent_frame frame = { .name = 1, .line = 1, .entry = true }, found[2];
	uint64_t at_ns = SECOND_NS;

	(void)state;
	for (uint64_t i = 1; i <= 200000; i++, at_ns += 1000) {
		frame.code = i * 64;
		recent_stacks_add(recent, 7, at_ns, i, &frame, 1);
	}
	recent_stacks_add(recent, 7, at_ns, 200000, &frame, 1);
	assert_int_equal(recent_stacks_at(recent, 7, at_ns - 500, found, 2), 1);
	recent_stacks_destroy(recent);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A map that is one line and a hole of 60 MB. */
static void a_hole_in_a_map_takes_no_memory(void **state)
{
	char path[64], text[] = "1000 40 compiled\n";
	size_t before, bytes = sizeof(text) - 1;
	struct jit_map *map;
	uint64_t start = 0;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(ftruncate(fd, 60 << 20), 0);
	close(fd);
	before = resident_bytes();
	map = jit_map_open(getpid());
	unlink(path);
	assert_string_equal(jit_map_find(map, 0x1010, &start), "compiled");
	assert_true(resident_bytes() < before + (20u << 20));
	jit_map_free(map);
}

/* As many modules as names of this program; each keeps a descriptor once it is open. */
static size_t open_modules(struct address_spaces *spaces, const char *folder, size_t count)
{
	struct perf_record record = { .kind = PERF_RECORD_OF_MMAP, .pid = getpid() };
	char path[128];
	size_t open_count = 0;

	for (size_t i = 0; i < count; i++) {
		const struct mapping *mapping;

		snprintf(path, sizeof(path), "%s/%zu", folder, i);
		assert_int_equal(symlink("/proc/self/exe", path), 0);
		record.mmap.path = path;
		record.mmap.start = (i + 1) << 20;
		record.mmap.bytes = 1 << 20;
		address_spaces_take(spaces, &record);
		mapping = address_space_at(address_spaces_find(spaces, getpid()),
					   record.mmap.start);
		open_count += module_open(mapping->module);
		unlink(path);
	}
	return open_count;
}

static void files_of_a_program_leave_descriptors(void **state)
{
	static struct address_spaces spaces;
	char folder[] = "/tmp/kymo-bounds-XXXXXX";
	struct rlimit before, limit;
	size_t opened;
	int fds[20];

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 512;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	opened = open_modules(&spaces, folder, 600);
	for (size_t i = 0; i < 20; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	for (size_t i = 0; i < 20; i++)
		close(fds[i]);
	assert_true(opened > 200);
	address_spaces_fini(&spaces);
	setrlimit(RLIMIT_NOFILE, &before);
	rmdir(folder);
}

static void an_empty_address_space_is_forgotten(void **state)
{
	static struct address_spaces spaces;

	(void)state;
	assert_non_null(address_spaces_get(&spaces, 12345));
	address_spaces_forget_ended(&spaces);
	assert_null(address_spaces_find(&spaces, 12345));
	address_spaces_fini(&spaces);
}

/* ---- call frame information ------------------------------------------------------------------ */

#define PROGRAM_AT 0x10000u /* the address of the first byte of the file */
#define CODE_AT 0x100000u
#define CODE_BYTES 0x100000u
#define EXPRESSION_BYTES 4000u

struct made {
	unsigned char bytes[16384];
	size_t used;
};

static void make_bytes(struct made *made, const void *from, size_t count)
{
	memcpy(made->bytes + made->used, from, count);
	made->used += count;
}

static void make_word(struct made *made, uint32_t word)
{
	make_bytes(made, &word, 4);
}

/* One description of one function, whose CFA is a long expression. */
static void make_frames(struct made *made)
{
	static const unsigned char common[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, DW_EH_PE_udata4 };
	static const unsigned char expression[EXPRESSION_BYTES];
	static const unsigned char begin[] = { 0, DW_CFA_def_cfa_expression,
					       EXPRESSION_BYTES % 128 + 128,
					       EXPRESSION_BYTES / 128 };
	static const unsigned char head[] = { 1, DW_EH_PE_udata4, DW_EH_PE_udata4,
					      DW_EH_PE_datarel | DW_EH_PE_sdata4 };

	make_word(made, 4 + sizeof(common) + 3); /* at 0 */
	make_word(made, 0);
	make_bytes(made, common, sizeof(common));
	make_bytes(made, "\0\0\0", 3);
	make_word(made, 12 + sizeof(begin) + EXPRESSION_BYTES); /* at 20 */
	make_word(made, (uint32_t)made->used);
	make_word(made, CODE_AT);
	make_word(made, CODE_BYTES);
	make_bytes(made, begin, sizeof(begin));
	make_bytes(made, expression, sizeof(expression));
	while (made->used < 8192)
		make_bytes(made, "", 1);
	make_bytes(made, head, sizeof(head)); /* at 8192 */
	make_word(made, PROGRAM_AT);
	make_word(made, 1);
	make_word(made, CODE_AT - (PROGRAM_AT + 8192));
	make_word(made, (uint32_t)(20 - 8192));
}

static void expressions_of_a_file_take_a_limited_memory(void **state)
{
	static struct made made;
	struct elf_image image = { .fd = -1, .memory = made.bytes };
	struct frame_table table;

	(void)state;
	make_frames(&made);
	image.bytes = made.used;
	image.part_count = 1;
	image.parts[0] = (struct elf_image_part){ PROGRAM_AT, 0, made.used };
	image.frame_index_address = PROGRAM_AT + 8192;
	image.frame_index_bytes = made.used - 8192;
	frame_table_init(&table, &image);
	for (uint64_t at = 0; at < 5000; at++)
		assert_non_null(frame_table_find(&table, CODE_AT + at));
	assert_true(table.expression_bytes > 0 && table.expression_room <= 4u << 20);
	frame_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_that_hangs_holds_no_one),
		cmocka_unit_test(answers_that_are_late_are_taken),
		cmocka_unit_test(a_process_that_is_added_later_has_no_fast_events),
		cmocka_unit_test(threads_that_have_ended_leave_room),
		cmocka_unit_test(callers_are_learned_after_very_many_functions),
		cmocka_unit_test(a_hole_in_a_map_takes_no_memory),
		cmocka_unit_test(files_of_a_program_leave_descriptors),
		cmocka_unit_test(an_empty_address_space_is_forgotten),
		cmocka_unit_test(expressions_of_a_file_take_a_limited_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
