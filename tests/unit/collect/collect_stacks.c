/*
 * Stacks of Pythons that do nothing but call. Every line of these programs calls one function at
 * most, so a stack that mixes two moments shows: the line that a caller is at must be the one that
 * calls the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/native/elfsym.h"
#include "collect/python/pylayout.h"
#include "collect/python/pystack.h"
#include "collect/backtrace/stacks.h"
#include "collect/backtrace/why.h"

#define SAMPLES 100000
#define SECONDS_MOST 40 /* for each kind of program, on a machine that is busy with other things */
#define PYTHONS_MOST 16
#define LINES_MOST 512
#define FUNCTIONS 26

/* ---- programs -------------------------------------------------------------------------------- */

struct program {
	char path[64];
	FILE *file;
	int line;
	char calls[LINES_MOST][16]; /* by line: the function that it calls; "": none */
	char owner[LINES_MOST][16]; /* by line: the function that it belongs to */
	char current[16];
};

static void put(struct program *program, const char *callee, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(program->file, format, args);
	va_end(args);
	fputc('\n', program->file);
	program->line++;
	assert_true(program->line < LINES_MOST);
	snprintf(program->calls[program->line], sizeof(program->calls[0]), "%s", callee);
	snprintf(program->owner[program->line], sizeof(program->owner[0]), "%s", program->current);
}

static void begin(struct program *program, const char *function, const char *arguments)
{
	snprintf(program->current, sizeof(program->current), "%s", function);
	put(program, "", "def %s(%s):", function, arguments);
}

static void call(struct program *program, const char *callee)
{
	put(program, callee, "    %s()", callee);
}

static void open_program(struct program *program)
{
	int fd;

	memset(program, 0, sizeof(*program));
	snprintf(program->path, sizeof(program->path), "/tmp/kymo-stacks-XXXXXX");
	fd = mkstemp(program->path);
	assert_true(fd >= 0);
	program->file = fdopen(fd, "w");
	assert_non_null(program->file);
}

static void end_program(struct program *program, const char *first)
{
	begin(program, "loop", "");
	put(program, "", "    while True:");
	put(program, first, "        %s()", first);
	if (!strcmp(first, "b"))
		put(program, "d", "        d()");
	snprintf(program->current, sizeof(program->current), "<module>");
	put(program, "", "import os; os.write(1, b'r')");
	put(program, "loop", "loop()");
	fclose(program->file);
}

/* Many functions, of different sizes, that call each other. */
static void write_graph(struct program *program)
{
	open_program(program);
	for (int i = 0; i < FUNCTIONS; i++) {
		char name[16], callee[16];

		snprintf(name, sizeof(name), "f%d", i);
		begin(program, name, "");
		for (int k = 0; k < i % 3; k++)
			put(program, "", "    v%d = %d", k, k);
		for (int k = 0; k < 3; k++) {
			int next = i + (int[]){ 1, 5, 11 }[k];

			if (next >= FUNCTIONS)
				continue;
			snprintf(callee, sizeof(callee), "f%d", next);
			call(program, callee);
		}
		put(program, "", "    return 1");
	}
	end_program(program, "f0");
}

/* Two pairs of equal size at the same place, in a loop as short as can be: the worst case. */
static void write_pairs(struct program *program)
{
	static const char *const pairs[][2] = { { "b", "c" }, { "d", "e" } };

	open_program(program);
	for (int i = 0; i < 2; i++) {
		begin(program, pairs[i][1], "");
		put(program, "", "    return 1");
		begin(program, pairs[i][0], "");
		call(program, pairs[i][1]);
	}
	end_program(program, "b");
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_possible(const struct program *program, const struct pystack_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct pystack_frame *frame = &thread->frames[i];
		bool in_program = frame->line > 0 && frame->line <= program->line;

		if (!in_program || strcmp(program->owner[frame->line], frame->code->name) != 0)
			return false;
		if (i && strcmp(program->calls[frame->line], thread->frames[i - 1].code->name) != 0)
			return false;
		if (!i && thread->partial && !program->calls[frame->line][0])
			return false;
	}
	return thread->frame_count &&
	       !strcmp(thread->frames[thread->frame_count - 1].code->name, "<module>");
}

static void show(const struct pystack_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++)
		fprintf(stderr, "  %s:%d\n", thread->frames[i].code->name, thread->frames[i].line);
}

static pid_t start(const char *python, const char *path)
{
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		execl(python, python, path, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ends[0]);
	return pid;
}

static void stop_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct counts {
	uint64_t accepted, partial, missed, impossible;
};

static void sample(const char *python, const struct program *program, size_t count, time_t until,
		   struct counts *counts)
{
	pid_t pid = start(python, program->path);
	struct kymo_error err = { 0 };
	struct pystack stack;

	if (!pid)
		return;
	if (pystack_open(&stack, pid, &err)) {
		print_message("%s: %s\n", python, err.text);
		pystack_close(&stack);
		stop_program(pid);
		return;
	}
	for (size_t i = 0; i < count && time(NULL) < until; i++) {
		assert_int_equal(pystack_read(&stack, &err), 0);
		assert_int_equal(stack.thread_count, 1);
		if (stack.threads[0].read && !is_possible(program, &stack.threads[0])) {
			counts->impossible++;
			print_message("%s%s:\n", python,
				      stack.threads[0].partial ? ", callers" : "");
			show(&stack.threads[0]);
		}
	}
	counts->accepted += stack.stats.threads;
	counts->partial += stack.stats.partial;
	counts->missed += stack.stats.missed;
	pystack_close(&stack);
	stop_program(pid);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static size_t find_pythons(char paths[][PATH_MAX])
{
	static const char *const patterns[] = { "/.pyenv/versions/3.1[1-4]*/bin/python3", NULL };
	const char *home = getenv("HOME");
	char pattern[PATH_MAX];
	size_t count = 0;
	glob_t found;

	if (!access("/usr/bin/python3", X_OK))
		snprintf(paths[count++], PATH_MAX, "/usr/bin/python3");
	snprintf(pattern, sizeof(pattern), "%s%s", home ? home : "", patterns[0]);
	if (!glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc && count < PYTHONS_MOST; i++)
			snprintf(paths[count++], PATH_MAX, "%s", found.gl_pathv[i]);
		globfree(&found);
	}
	return count;
}

static void no_stack_is_impossible(void (*write_program)(struct program *))
{
	static char paths[PYTHONS_MOST][PATH_MAX];
	size_t pythons = find_pythons(paths), all = SAMPLES / 2;
	struct counts counts = { 0 };
	struct program program;

	if (!pythons) {
		print_message("there is no Python to sample\n");
		skip();
	}
	if (getenv("KYMO_TEST_KILLS")) /* a sanitizer's run: shorter */
		all /= 20;
	write_program(&program);
	for (size_t i = 0; i < pythons; i++)
		sample(paths[i], &program, all / pythons,
		       time(NULL) + SECONDS_MOST / (time_t)pythons + 1, &counts);
	unlink(program.path);
	if (!counts.accepted) {
		print_message("no Python here can be read\n");
		skip();
	}
	print_message("%lu accepted, %lu of them callers alone, %lu missed\n",
		      (unsigned long)counts.accepted, (unsigned long)counts.partial,
		      (unsigned long)counts.missed);
	assert_int_equal(counts.impossible, 0);
	/* How many are read depends on who is faster, we or the program: a good part of them, on
	   any machine. */
	assert_true(counts.accepted > counts.missed / 10);
}

static void a_graph_of_many_functions_gives_no_impossible_stack(void **state)
{
	(void)state;
	no_stack_is_impossible(write_graph);
}

static void two_pairs_in_the_shortest_loop_are_never_mixed(void **state)
{
	(void)state;
	no_stack_is_impossible(write_pairs);
}

static void lines_are_decoded_as_python_decodes_them(void **state)
{
	/* Units 0 (line 10, none for columns), 1-2 (line 12, one line form), 3 (no line), 4 (back
	   to 11). */
	static const unsigned char lines[] = { 0x80 | 13 << 3 | 0,
					       0,
					       0x80 | 12 << 3 | 1,
					       1,
					       5,
					       0x80 | 15 << 3 | 0,
					       0x80 | 14 << 3 | 0,
					       3,
					       0,
					       1,
					       2 };
	static const int wanted[] = { 10, 12, 12, 0, 11, 0 };

	(void)state;
	assert_int_equal(pycode_decode_line(lines, sizeof(lines), 10, -1), 10);
	for (int i = 0; i < 6; i++)
		assert_int_equal(pycode_decode_line(lines, sizeof(lines), 10, i), wanted[i]);
	for (size_t cut = 0; cut < sizeof(lines); cut++)
		for (int i = -1; i < 6; i++)
			pycode_decode_line(lines, cut, 10, i);
}

/* Differences of lines that leave the range of an int, to both sides; UBSan sees an overflow. */
static void line_tables_that_lead_anywhere_are_decoded(void **state)
{
	const unsigned char up[] = { 0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03,
				     0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03 };
	unsigned char down[sizeof(up)];

	(void)state;
	memcpy(down, up, sizeof(up));
	down[1] = down[8] = 0x7f;
	for (int64_t unit = 0; unit < 4; unit++) {
		pycode_decode_line(up, sizeof(up), INT32_MAX, unit);
		pycode_decode_line(down, sizeof(down), INT32_MIN, unit);
	}
}

/* Offsets that a program describes are its own: each is set to a large number in turn. */
static void described_offsets_stay_within_what_is_copied(void **state)
{
	uint64_t words[PYLAYOUT_DEBUG_BYTES / 8] = { 0 };
	struct pylayout layout = *pylayout_find(13);
	int refused = 0;

	(void)state;
	memcpy(words, "xdebugpy", 8);
	words[1] = 0x030d00f0;
	/* frame: localsplus and owner; code: linetable; dict: values; unicode: asciiobject_size */
	words[32] = 72, words[33] = 70, words[38] = 136, words[58] = 40, words[70] = 40;
	assert_int_equal(pylayout_describe(&layout, words, sizeof(words)), 0);
	for (size_t at = 21; at <= 70; at++) {
		uint64_t was = words[at];

		layout = *pylayout_find(13);
		words[at] = 1 << 20;
		refused += pylayout_describe(&layout, words, sizeof(words)) != 0;
		assert_true(layout.frame_localsplus <= PYLAYOUT_FRAME_BYTES || refused);
		words[at] = was;
	}
	/* Six of threads, five of frames, eight of code, two each of dict and int, three of str. */
	assert_true(refused >= 24);
}

static void calls_of_the_kernel_are_parsed(void **state)
{
	struct wait_call call;

	(void)state;
	assert_int_equal(wait_call_parse("running\n", &call), 1);
	assert_int_equal(wait_call_parse("0 0x3 0x7f00 0x10 0x0 0x0 0x0 0x7ffc 0x7f01\n", &call),
			 0);
	assert_true(call.number == 0 && call.argument[0] == 3 && call.argument[2] == 16);
	assert_int_equal(wait_call_parse("-1 0x7ffc 0x7f01\n", &call), 0);
	assert_int_equal(call.number, -1);
	assert_int_equal(wait_call_parse("", &call), -EINVAL);
}

static void names_that_look_like_secrets_are_known(void **state)
{
	static const char *const secret[] = { "password",     "db_passwd", "API_KEY",
					      "hf_token",     "token",	   "client_secret",
					      "Authorization" };
	static const char *const plain[] = { "tokens", "key", "batch", "tokenizer", "monkey" };

	(void)state;
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		assert_true(stacks_is_secret(secret[i]));
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_false(stacks_is_secret(plain[i]));
}

/* A library that somebody made up: every byte of its head, and bytes of its tables, as 0, 0x7f and
   0xff. */
static void damaged_libraries_are_read_without_harm(void **state)
{
	char path[] = "/tmp/kymo-elf-XXXXXX";
	static unsigned char bytes[1 << 20];
	int fd = mkstemp(path), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t got = read(self, bytes, sizeof(bytes));
	struct elfsym elf;
	uint64_t bias;

	(void)state;
	assert_true(fd >= 0 && got > 4096);
	close(self);
	for (size_t at = 0; at < 640; at++) {
		unsigned char before = bytes[at];

		bytes[at] = (unsigned char[]){ 0, 0x7f, 0xff }[at % 3];
		assert_int_equal(pwrite(fd, bytes, (size_t)got, 0), got);
		bytes[at] = before;
		if (elfsym_open(&elf, path))
			continue;
		elfsym_find(&elf, "_PyRuntime");
		elfsym_section(&elf, ".PyRuntime");
		elfsym_bias(&elf, 0x1000, 0, &bias);
		elfsym_close(&elf);
	}
	close(fd);
	unlink(path);
}

static void a_pid_used_again_is_not_the_same_program(void **state)
{
	static char paths[PYTHONS_MOST][PATH_MAX];
	struct program program;
	struct pystack stack;
	struct kymo_error err = { 0 };
	pid_t pid;

	(void)state;
	if (!find_pythons(paths))
		skip();
	write_pairs(&program);
	pid = start(paths[0], program.path);
	unlink(program.path);
	if (!pid || pystack_open(&stack, pid, &err))
		skip();
	assert_int_equal(pystack_read(&stack, &err), 0);
	stop_program(pid);
	/* Whoever gets that number next: the reader holds on to the one it was opened for. */
	stack.pid = getpid();
	assert_int_equal(pystack_read(&stack, &err), -ESRCH);
	pystack_close(&stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_decoded_as_python_decodes_them),
		cmocka_unit_test(line_tables_that_lead_anywhere_are_decoded),
		cmocka_unit_test(described_offsets_stay_within_what_is_copied),
		cmocka_unit_test(calls_of_the_kernel_are_parsed),
		cmocka_unit_test(names_that_look_like_secrets_are_known),
		cmocka_unit_test(damaged_libraries_are_read_without_harm),
		cmocka_unit_test(a_pid_used_again_is_not_the_same_program),
		cmocka_unit_test(a_graph_of_many_functions_gives_no_impossible_stack),
		cmocka_unit_test(two_pairs_in_the_shortest_loop_are_never_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
