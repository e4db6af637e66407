/*
 * Stacks that stay the same: what a sample of them costs, and functions that are made anew at the
 * place of old ones, so that their stacks look the same.
 */
#include <fcntl.h>
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

#include "collect/python/pystack.h"
#include "collect/sample/stacktrie.h"

#define PYTHON "/usr/bin/env"
#define SAMPLES 2000
#define SECONDS_MOST 60 /* on a machine that does much else */

struct target {
	pid_t pid;
	struct pystack stack;
};

/* Starts a Python and waits for its first output; skips the test where none can be read. */
static void start_target(struct target *target, const char *code)
{
	struct kymo_error err = { 0 };
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	target->pid = fork();
	if (!target->pid) {
		dup2(ends[1], STDOUT_FILENO);
		execl(PYTHON, PYTHON, "python3", "-c", code, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1 || pystack_open(&target->stack, target->pid, &err)) {
		print_message("no Python to sample: %s\n", err.text);
		kill(target->pid, SIGKILL);
		waitpid(target->pid, NULL, 0);
		skip();
	}
	close(ends[0]);
}

static void end_target(struct target *target)
{
	pystack_close(&target->stack);
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
}

static void read_target(struct target *target)
{
	struct kymo_error err = { 0 };

	assert_int_equal(pystack_read(&target->stack, &err), 0);
}

static const struct pystack_thread *first_thread(const struct target *target)
{
	assert_true(target->stack.thread_count > 0);
	return &target->stack.threads[0];
}

#define SLEEPING \
	"import os, threading, time\n" \
	"def nap():\n" \
	"    time.sleep(1000)\n" \
	"def outer():\n" \
	"    nap()\n" \
	"for i in range(3): threading.Thread(target=outer, daemon=True).start()\n" \
	"time.sleep(0.3)\n" \
	"os.write(1, b'r')\n" \
	"outer()\n"

static void an_unchanged_stack_is_read_with_one_system_call(void **state)
{
	struct target target;
	uint64_t calls;

	(void)state;
	start_target(&target, SLEEPING);
	usleep(200000);
	for (int i = 0; i < 5; i++)
		read_target(&target);
	calls = target.stack.stats.calls;
	for (int i = 0; i < 50; i++)
		read_target(&target);
	assert_int_equal(target.stack.thread_count, 4);
	assert_true(target.stack.threads[3].read && !target.stack.threads[3].ran);
	assert_int_equal(target.stack.stats.calls - calls, 50);
	end_target(&target);
}

/* Code objects die and are made at the same addresses; each has a file and a function of its
   number. */
#define REMADE \
	"import os\n" \
	"def load(n):\n" \
	"    exec(compile(f'def f{n}():\\n for i in range(9000): pass\\nf{n}()', f'gen{n}', " \
	"'exec'), {})\n" \
	"n = 0\n" \
	"os.write(1, b'r')\n" \
	"while True:\n" \
	"    n = (n + 1) % 10\n" \
	"    load(n)\n"

/* The number of a generated frame; -1: it is not one. */
static int number_of(const struct pystack_frame *frame)
{
	return strncmp(frame->code->file, "gen", 3) ? -1 : atoi(frame->code->file + 3);
}

static void check_numbers(const struct pystack_thread *thread, uint64_t *seen, uint64_t *wrong)
{
	int first = -1;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct pystack_frame *frame = &thread->frames[i];
		int number = number_of(frame);

		if (number < 0)
			continue;
		if (first < 0)
			first = number;
		if (number != first ||
		    (frame->code->name[0] == 'f' && atoi(frame->code->name + 1) != number))
			(*wrong)++;
		(*seen)++;
	}
}

static void a_function_made_at_the_place_of_another_has_its_own_name(void **state)
{
	time_t until = time(NULL) + SECONDS_MOST;
	struct target target;
	uint64_t seen = 0, wrong = 0;

	(void)state;
	start_target(&target, REMADE);
	for (int i = 0; (i < SAMPLES || !seen) && time(NULL) < until; i++) {
		read_target(&target);
		if (first_thread(&target)->read)
			check_numbers(first_thread(&target), &seen, &wrong);
		usleep(200);
	}
	print_message("%lu generated frames, %lu wrong\n", (unsigned long)seen,
		      (unsigned long)wrong);
	end_target(&target);
	/* A stack may change while it is read, and then to one with the same addresses. */
	assert_true(wrong * 100 <= seen);
	if (!seen)
		skip(); /* too slow: the functions are gone before they are copied */
}

static void a_thread_that_runs_is_seen_to_run(void **state)
{
	time_t until = time(NULL) + SECONDS_MOST;
	struct target target;
	int ran = 0;

	(void)state;
	start_target(&target, "import os\nos.write(1, b'r')\nx = 0\nwhile True: x += 1\n");
	for (int i = 0; !ran && time(NULL) < until; i++) {
		read_target(&target);
		ran = first_thread(&target)->read && first_thread(&target)->ran;
		usleep(1000);
	}
	assert_true(ran);
	end_target(&target);
}

static struct pystack_thread thread_of(struct pystack_frame *frames, size_t count)
{
	return (struct pystack_thread){ .read = true, .frames = frames, .frame_count = count };
}

/* The nodes of a path are those that a search would find. */
static void a_path_gives_the_nodes_of_a_search(void **state)
{
	struct pycode codes[3] = { { .name_id = 1 }, { .name_id = 2 }, { .name_id = 3 } };
	struct pystack_frame frames[3] = { 0 };
	struct stacktrie_path path = { 0 };
	struct stacktrie trie;

	(void)state;
	stacktrie_init(&trie, 0);
	for (int i = 0; i < 400; i++) {
		struct stacktrie_path none = { 0 };
		size_t count = 1 + (size_t)(i * 7 % 3);
		struct pystack_thread thread = thread_of(frames, count);

		for (size_t k = 0; k < count; k++) {
			frames[k].code = &codes[(i / 5 + (int)k) % 3];
			frames[k].line = 1 + i % (int)(2 + k);
		}
		assert_int_equal(stacktrie_add(&trie, &thread, &path),
				 stacktrie_add(&trie, &thread, &none));
		stacktrie_forget(&none);
	}
	stacktrie_forget(&path);
	stacktrie_fini(&trie);
}

static void a_trie_that_starts_again_gives_new_nodes(void **state)
{
	struct pycode code = { .name_id = 1 };
	struct pystack_frame frames[4] = { 0 };
	struct stacktrie_path path = { 0 };
	struct stacktrie trie;
	uint32_t last = 0;

	(void)state;
	stacktrie_init(&trie, 16);
	for (int i = 0; i < 100; i++) {
		struct pystack_thread thread = thread_of(frames, 4);
		uint32_t node;

		frames[0] = (struct pystack_frame){ .code = &code, .line = i + 1 };
		for (int k = 1; k < 4; k++)
			frames[k] = (struct pystack_frame){ .code = &code, .line = k };
		stacktrie_begin(&trie);
		node = stacktrie_add(&trie, &thread, &path);
		assert_true(node > last);
		assert_true(path.count == 4 && path.steps[2].node > trie.before);
		last = node;
	}
	stacktrie_forget(&path);
	stacktrie_fini(&trie);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unchanged_stack_is_read_with_one_system_call),
		cmocka_unit_test(a_function_made_at_the_place_of_another_has_its_own_name),
		cmocka_unit_test(a_thread_that_runs_is_seen_to_run),
		cmocka_unit_test(a_path_gives_the_nodes_of_a_search),
		cmocka_unit_test(a_trie_that_starts_again_gives_new_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
