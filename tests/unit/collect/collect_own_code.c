/* Which frames are the program's own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/backtrace/own_code.h"

static bool is_own(const char *file, const char *cwd)
{
	return own_code_is(file, strlen(file), cwd);
}

static void files_of_the_program_are_its_own(void **state)
{
	(void)state;
	assert_true(is_own("/home/ada/train.py", "/home/ada"));
	assert_true(is_own("/home/ada/train.py", ""));
	assert_true(is_own("/home/bob/editable/pkg/mod.py", "/home/ada"));
	assert_true(is_own("train.py", "/home/ada"));
	assert_true(is_own("<string>", "/home/ada"));
	assert_true(is_own("<stdin>", "/"));
}

static void the_library_and_packages_are_not(void **state)
{
	static const char *const foreign[] = {
		"/usr/lib/python3.11/json/decoder.py",
		"/usr/lib64/python3.12/threading.py",
		"/opt/conda/lib/python3.11/site-packages/torch/nn/modules/linear.py",
		"/usr/lib/python3/dist-packages/numpy/core.py",
		"/home/ada/.venv/lib/python3.11/site-packages/pandas/io.py",
		"<frozen importlib._bootstrap>",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		assert_false(is_own(foreign[i], "/home/ada"));
		assert_false(is_own(foreign[i], ""));
	}
}

static void a_project_inside_a_library_folder_is_its_own(void **state)
{
	(void)state;
	assert_true(is_own("/srv/lib/python3/app/main.py", "/srv/lib/python3/app"));
	assert_false(is_own("/srv/lib/python3/app/main.py", "/srv/lib/python3/ap"));
	assert_false(
		is_own("/srv/lib/python3/app/v/lib/python3.11/json.py", "/srv/lib/python3/app"));
}

static void more_folders_can_be_named(void **state)
{
	(void)state;
	setenv("KYMO_OWN_CODE", "/nowhere:/opt/lib/python3.11/site-packages/mine/:", 1);
	assert_true(is_own("/opt/lib/python3.11/site-packages/mine/a.py", "/home/ada"));
	assert_false(is_own("/opt/lib/python3.11/site-packages/mines/a.py", "/home/ada"));
	unsetenv("KYMO_OWN_CODE");
}

static void code_without_a_file_is_own_only_if_there_is_no_other(void **state)
{
	static const char *const weak[] = { "<string>", "<stdin>", "<ipython-input-3>",
					    "/home/ada/.venv/bin/torchrun", "" };
	static const char *const strong[] = { "/home/ada/train.py", "train.py", "/srv/bin/app.py",
					      "/home/ada/cabin/run", "bin" };

	(void)state;
	for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++)
		assert_true(own_code_is_weak(weak[i], strlen(weak[i])));
	for (size_t i = 0; i < sizeof(strong) / sizeof(strong[0]); i++)
		assert_false(own_code_is_weak(strong[i], strlen(strong[i])));
}

static bool is_worker(const char *function, const char *file)
{
	return own_code_is_worker(function, strlen(function), file, strlen(file));
}

static void a_worker_begins_in_multiprocessing(void **state)
{
	(void)state;
	assert_true(is_worker("_bootstrap", "/usr/lib/python3.10/multiprocessing/process.py"));
	assert_true(is_worker("BaseProcess._bootstrap",
			      "/usr/lib/python3.12/multiprocessing/process.py"));
	assert_false(is_worker("Thread._bootstrap", "/usr/lib/python3.12/threading.py"));
	assert_false(is_worker("run", "/usr/lib/python3.12/multiprocessing/process.py"));
	assert_false(is_worker("", ""));
}

static bool is_recorder(const char *function)
{
	return own_code_is_recorder(function, strlen(function));
}

static void inline_functions_of_kymo_are_not_own_code(void **state)
{
	(void)state;
	assert_true(is_recorder("kymo__zone_close"));
	assert_true(is_recorder("kymo_zone_begin"));
	assert_true(is_recorder("kymo_ticks"));
	assert_false(is_recorder("kymo"));
	assert_false(is_recorder("kymograph_draw"));
	assert_false(is_recorder("forward"));
	assert_false(is_recorder(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_the_program_are_its_own),
		cmocka_unit_test(the_library_and_packages_are_not),
		cmocka_unit_test(a_project_inside_a_library_folder_is_its_own),
		cmocka_unit_test(more_folders_can_be_named),
		cmocka_unit_test(a_worker_begins_in_multiprocessing),
		cmocka_unit_test(inline_functions_of_kymo_are_not_own_code),
		cmocka_unit_test(code_without_a_file_is_own_only_if_there_is_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
