/* What nrt.h and nrt_profile.h promise, one claim to a name: nrt_checks NAME [ARGUMENTS]. Exit
   status 0: it holds. */
#include <nrt/nrt_profile.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nrt_checks.h"

/* ---- arguments ------------------------------------------------------------------------------ */

static void null_everywhere(char **words)
{
	nrt_profile_continuous_options_t *continuous = NULL;
	nrt_inspect_config_t *config = NULL;
	nrt_model_t *model = NULL;
	const char **list = NULL;
	size_t count = 0;

	(void)words;
	begin();
	IS(nrt_load(NULL, 10, 0, 1, &model), NRT_INVALID);
	IS(nrt_load("x", 1, 0, 1, NULL), NRT_INVALID);
	IS(nrt_load("x", 0, 0, 1, &model), NRT_INVALID);
	IS(nrt_unload(NULL), NRT_INVALID);
	IS(nrt_execute(NULL, NULL, NULL), NRT_INVALID);
	model = fake("null", 0);
	IS(nrt_profile_start(NULL, "a.ntff"), NRT_INVALID);
	IS(nrt_profile_start(model, NULL), NRT_INVALID);
	IS(nrt_profile_start(model, ""), NRT_INVALID);
	IS(nrt_profile_stop(NULL), NRT_INVALID);
	IS(nrt_profile_stop(""), NRT_INVALID);
	IS(nrt_profile_continuous_options_allocate(NULL), NRT_INVALID);
	IS(nrt_profile_continuous_options_free(NULL), NRT_INVALID);
	IS(nrt_profile_continuous_options_set_output_dir(NULL, "x"), NRT_INVALID);
	IS(nrt_profile_continuous_options_allocate(&continuous), NRT_SUCCESS);
	IS(nrt_profile_continuous_options_set_output_dir(continuous, NULL), NRT_INVALID);
	IS(nrt_profile_continuous_options_set_output_dir(continuous, ""), NRT_INVALID);
	IS(nrt_profile_continuous_start(NULL), NRT_INVALID);
	IS(nrt_profile_continuous_save(0, NULL), NRT_INVALID);
	IS(nrt_profile_continuous_options_free(continuous), NRT_SUCCESS);
	IS(nrt_inspect_config_allocate(NULL), NRT_INVALID);
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	IS(nrt_inspect_config_set_defaults(NULL), NRT_INVALID);
	IS(nrt_inspect_config_free(NULL), NRT_INVALID);
	IS(nrt_inspect_config_set_session_id(NULL, 1), NRT_INVALID);
	IS(nrt_inspect_config_set_output_dir(NULL, "x"), NRT_INVALID);
	IS(nrt_inspect_config_set_output_dir(config, NULL), NRT_INVALID);
	IS(nrt_inspect_config_set_output_dir(config, ""), NRT_INVALID);
	IS(nrt_inspect_config_set_sys_trace_max_events_per_nc(NULL, 1), NRT_INVALID);
	IS(nrt_inspect_config_set_capture_enabled_for_nc(NULL, 0, true), NRT_INVALID);
	IS(nrt_inspect_config_set_capture_enabled_for_event_type_string(NULL, "kernel", true),
	   NRT_INVALID);
	IS(nrt_inspect_config_set_capture_enabled_for_event_type_string(config, NULL, true),
	   NRT_INVALID);
	IS(nrt_inspect_config_set_enable_inspect(NULL, true), NRT_INVALID);
	IS(nrt_inspect_config_set_enable_inspect_on_fail(NULL, true), NRT_INVALID);
	IS(nrt_inspect_config_set_activity(NULL, "all", true), NRT_INVALID);
	IS(nrt_inspect_config_set_activity(config, NULL, true), NRT_INVALID);
	IS(nrt_inspect_config_get_all_activity_types(NULL, &count), NRT_INVALID);
	IS(nrt_inspect_config_get_all_activity_types(&list, NULL), NRT_INVALID);
	IS(nrt_inspect_config_get_enabled_activity_types(NULL, &list, &count), NRT_INVALID);
	IS(nrt_inspect_config_get_enabled_activity_types(config, NULL, &count), NRT_INVALID);
	IS(nrt_inspect_config_get_enabled_activity_types(config, &list, NULL), NRT_INVALID);
	nrt_inspect_config_free_activity_types(NULL, 3);
	IS(nrt_inspect_config_free(config), NRT_SUCCESS);
}

static void bad_arguments(char **words)
{
	static const char *const no_models[] = {
		"x",
		"kymo-fake-model",
		"kymo-fake-model a",
		"kymo-fake-model a\nop",
		"\0abc",
		"void f(void) {}",
		"// kernel void commented(void) {}",
		"kymo-fake-model a\nop 99999999999999999999999",
	};
	nrt_inspect_config_t *config = NULL;
	nrt_model_t *model, *other;
	char here[8] = "";

	(void)words;
	IS(nrt_init(NRT_FRAMEWORK_TYPE_INVALID, "", ""), NRT_INVALID);
	IS(nrt_init((nrt_framework_type_t)99, NULL, NULL), NRT_INVALID);
	begin();
	for (size_t i = 0; i < sizeof(no_models) / sizeof(no_models[0]); i++)
		IS(nrt_load(no_models[i], strlen(no_models[i]) + 1, 0, 1, &model), NRT_INVALID);
	model = fake("bad", 63);
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 64, 1, &other), NRT_INVALID);
	IS(nrt_load("kymo-fake-model a\nop 1", 22, -2, 1, &other), NRT_INVALID);
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 0, 0, &other), NRT_INVALID);
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 63, 2, &other), NRT_INVALID);
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 60, 4, &other), NRT_SUCCESS);
	IS(nrt_load("kymo-fake-model a\nop 1", 22, -1, -1, &other), NRT_SUCCESS);
	IS(nrt_execute((nrt_model_t *)(void *)here, NULL, NULL), NRT_INVALID);
	IS(nrt_unload((nrt_model_t *)(void *)here), NRT_INVALID);
	IS(nrt_profile_start((nrt_model_t *)(void *)here, "a.ntff"), NRT_INVALID);
	IS(nrt_execute(model, (nrt_tensor_set_t *)(void *)here, NULL), NRT_INVALID);
	IS(nrt_execute(model, NULL, (nrt_tensor_set_t *)(void *)here), NRT_INVALID);
	IS(nrt_unload(model), NRT_SUCCESS);
	IS(nrt_unload(model), NRT_INVALID);
	IS(nrt_execute(model, NULL, NULL), NRT_INVALID);
	IS(nrt_profile_start(model, "a.ntff"), NRT_INVALID);
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	IS(nrt_inspect_config_set_capture_enabled_for_nc(config, 64, true), NRT_INVALID);
	IS(nrt_inspect_config_set_sys_trace_max_events_per_nc(config, 0), NRT_INVALID);
	IS(nrt_inspect_config_set_activity(config, "everything", true), NRT_INVALID);
	IS(nrt_inspect_config_set_capture_enabled_for_event_type_string(config, "kernels", true),
	   NRT_INVALID);
	IS(nrt_inspect_config_free(config), NRT_SUCCESS);
}

static void life(char **words)
{
	nrt_model_t *model;

	(void)words;
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 0, 1, &model), NRT_UNINITIALIZED);
	IS(nrt_execute((nrt_model_t *)(void *)&model, NULL, NULL), NRT_UNINITIALIZED);
	nrt_close();
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 0, 1, &model), NRT_UNINITIALIZED);
	begin();
	begin();
	model = fake("living", 0);
	run(model, 1);
	nrt_close();
	IS(nrt_load("kymo-fake-model a\nop 1", 22, 0, 1, &model), NRT_CLOSED);
	IS(nrt_execute(model, NULL, NULL), NRT_INVALID);
	IS(nrt_execute((nrt_model_t *)(void *)&model, NULL, NULL), NRT_CLOSED);
	nrt_close();
	begin();
	run(fake("living", 0), 1);
}

static void statuses(char **words)
{
	(void)words;
	for (int i = 0; i < 16; i++)
		printf("%d %s\n", i, nrt_get_status_as_str((NRT_STATUS)i));
}

/* ---- one model ---- */

static void one_model(char **words)
{
	nrt_model_t *one, *other, *third;

	(void)words;
	begin();
	one = fake("one", 0);
	other = fake("other", 1);
	third = fake("one", 2); /* called one_2 */
	run(one, 3);
	IS(nrt_profile_stop("one.ntff"), NRT_INVALID);
	IS(nrt_profile_start(one, "one.ntff"), NRT_SUCCESS);
	IS(nrt_profile_start(one, "one.ntff"), NRT_INVALID);
	IS(nrt_profile_start(one, "another.ntff"), NRT_INVALID);
	IS(nrt_profile_start(other, "one.ntff"), NRT_INVALID);
	IS(nrt_profile_stop("another.ntff"), NRT_INVALID);
	IS(nrt_profile_start(third, "third.ntff"), NRT_SUCCESS);
	run(other, 7);
	run(one, 10);
	run(third, 4);
	TRUE(access("one.ntff", F_OK) != 0);
	IS(nrt_profile_stop("one.ntff"), NRT_SUCCESS);
	IS(nrt_profile_stop("one.ntff"), NRT_INVALID);
	run(one, 5);
	IS(nrt_profile_start(one, "again.ntff"), NRT_SUCCESS);
	run(one, 2);
	IS(nrt_unload(one), NRT_SUCCESS);
	IS(nrt_profile_stop("again.ntff"), NRT_SUCCESS);
	nrt_close();
	IS(nrt_profile_stop("third.ntff"), NRT_SUCCESS);
}

/* Stops are tried until there is room: nrt_checks full FILE ROOM, where ROOM is a file that takes
   the room away. */
static void full(char **words)
{
	nrt_model_t *model;

	begin();
	model = fake("full", 0);
	IS(nrt_profile_start(model, words[0]), NRT_SUCCESS);
	run(model, 500);
	IS(nrt_profile_stop(words[0]), NRT_FAILURE);
	unlink(words[1]);
	IS(nrt_profile_stop(words[0]), NRT_SUCCESS);
}

/* A limit of the program's own: no signal, and the old file whole. */
static void small_files(char **words)
{
	struct rlimit limit = { 100000, RLIM_INFINITY };
	nrt_model_t *model;

	begin();
	model = fake("small", 0);
	IS(nrt_profile_start(model, words[0]), NRT_SUCCESS);
	run(model, 5000);
	TRUE(!setrlimit(RLIMIT_FSIZE, &limit));
	IS(nrt_profile_stop(words[0]), NRT_FAILURE);
}

static void unwritable(char **words)
{
	nrt_profile_continuous_options_t *options = options_for(words[0]);
	nrt_inspect_config_t *config;
	nrt_model_t *model;

	begin();
	model = fake("unwritable", 0);
	IS(nrt_profile_start(model, words[1]), NRT_SUCCESS);
	IS(nrt_profile_continuous_start(options), NRT_SUCCESS);
	run(model, 3);
	IS(nrt_profile_stop(words[1]), NRT_FAILURE);
	IS(nrt_profile_continuous_save(0, options), NRT_FAILURE);
	IS(nrt_profile_continuous_stop(), NRT_SUCCESS);
	IS(nrt_profile_continuous_options_free(options), NRT_SUCCESS);
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	IS(nrt_inspect_config_set_output_dir(config, words[0]), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_SUCCESS);
	run(model, 3);
	IS(nrt_inspect_stop(), NRT_FAILURE);
	IS(nrt_inspect_begin_with_options(config), NRT_INVALID); /* it goes on */
	IS(nrt_inspect_config_free(config), NRT_SUCCESS);
}

/* ---- continuous ---- */

static void continuous(char **words)
{
	nrt_profile_continuous_options_t *options = options_for(words[0]);
	nrt_model_t *one, *other, *third;

	begin();
	one = fake("one", 0);
	other = fake("other", 0);
	third = fake("third", 5);
	IS(nrt_profile_continuous_save(0, options), NRT_UNINITIALIZED);
	IS(nrt_profile_continuous_stop(), NRT_UNINITIALIZED);
	run(one, 3);
	IS(nrt_profile_continuous_start(options), NRT_SUCCESS);
	IS(nrt_profile_continuous_start(options), NRT_INVALID);
	IS(nrt_profile_continuous_save(0, options), NRT_INVALID);
	run(other, 4);
	run(one, 6);
	run(third, 9);
	TRUE(access(words[0], F_OK) != 0);
	IS(nrt_profile_continuous_save(0, options), NRT_SUCCESS);
	IS(nrt_profile_continuous_save(5, options), NRT_SUCCESS);
	IS(nrt_profile_continuous_save(4, options), NRT_INVALID);
	IS(nrt_profile_continuous_save(64, options), NRT_INVALID);
	IS(nrt_profile_continuous_save(UINT32_MAX, options), NRT_INVALID);
	run(one, 2);
	IS(nrt_profile_continuous_save(0, options), NRT_SUCCESS);
	run(other, 1);
	IS(nrt_profile_continuous_save(0, options), NRT_SUCCESS);
	IS(nrt_profile_continuous_stop(), NRT_SUCCESS);
	IS(nrt_profile_continuous_stop(), NRT_UNINITIALIZED);
	IS(nrt_profile_continuous_save(0, options), NRT_UNINITIALIZED);
	IS(nrt_profile_continuous_options_free(options), NRT_SUCCESS);
}

static void one_at_a_time(char **words)
{
	nrt_profile_continuous_options_t *options = options_for(words[0]);
	nrt_inspect_config_t *config;

	begin();
	IS(nrt_inspect_stop(), NRT_INVALID);
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	IS(nrt_inspect_config_set_output_dir(config, words[0]), NRT_SUCCESS);
	IS(nrt_profile_continuous_start(options), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_FAILURE);
	IS(nrt_inspect_config_set_activity(config, "device_profile", false), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_SUCCESS);
	IS(nrt_profile_continuous_stop(), NRT_SUCCESS);
	IS(nrt_profile_continuous_start(options), NRT_SUCCESS);
	IS(nrt_profile_continuous_stop(), NRT_SUCCESS);
	IS(nrt_inspect_stop(), NRT_SUCCESS);
	IS(nrt_inspect_config_set_activity(config, "device_profile", true), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_INVALID);
	IS(nrt_inspect_begin(), NRT_INVALID);
	IS(nrt_profile_continuous_start(options), NRT_FAILURE);
	IS(nrt_inspect_stop(), NRT_SUCCESS);
	IS(nrt_inspect_stop(), NRT_INVALID);
	IS(nrt_inspect_config_free(config), NRT_SUCCESS);
	IS(nrt_profile_continuous_options_free(options), NRT_SUCCESS);
}

/* Many executions, saved at the end: nrt_checks many DIRECTORY COUNT. */
static void many(char **words)
{
	nrt_profile_continuous_options_t *options = options_for(words[0]);
	nrt_model_t *model;

	begin();
	model = load("kymo-fake-model many\nop 0\n", 0);
	IS(nrt_profile_continuous_start(options), NRT_SUCCESS);
	run(model, atoi(words[1]));
	IS(nrt_profile_continuous_save(0, options), NRT_SUCCESS);
	IS(nrt_profile_continuous_options_free(options), NRT_SUCCESS);
}

/* ---- inspect ---- */

/* Model m0 on core 0 runs once, m1 on core 1 twice, … m3 four times. */
static void run_four(void)
{
	for (int core = 0; core < 4; core++) {
		char name[8];
		nrt_model_t *model;

		snprintf(name, sizeof(name), "m%d", core);
		model = fake(name, core);
		run(model, core + 1);
		IS(nrt_unload(model), NRT_SUCCESS);
	}
}

static void by_environment(char **words)
{
	(void)words;
	IS(nrt_inspect_begin(), NRT_SUCCESS);
	begin();
	run_four();
	IS(nrt_inspect_stop(), NRT_SUCCESS);
}

/* With ENABLE=1 in the environment nrt_init() has begun already. */
static void begin_after_init(char **words)
{
	(void)words;
	begin();
	run_four();
	IS(nrt_inspect_begin(), NRT_SUCCESS);
	run_four();
	IS(nrt_inspect_stop(), NRT_SUCCESS);
	IS(nrt_inspect_stop(), NRT_INVALID);
}

static void no_calls(char **words)
{
	(void)words;
	begin();
	run_four();
}

static void by_null(char **words)
{
	(void)words;
	begin();
	IS(nrt_inspect_begin_with_options(NULL), NRT_SUCCESS);
	run_four();
	IS(nrt_inspect_stop(), NRT_SUCCESS);
}

static void by_options(char **words)
{
	nrt_inspect_config_t *config;
	char directory[256];

	begin();
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	snprintf(directory, sizeof(directory), "%s", words[0]);
	IS(nrt_inspect_config_set_output_dir(config, directory), NRT_SUCCESS);
	memset(directory, 'x', sizeof(directory)); /* it was copied */
	IS(nrt_inspect_config_set_session_id(config, 42), NRT_SUCCESS);
	IS(nrt_inspect_config_set_capture_enabled_for_nc(config, 2, false), NRT_SUCCESS);
	IS(nrt_inspect_config_set_capture_enabled_for_event_type_string(config, "kernel", false),
	   NRT_SUCCESS);
	IS(nrt_inspect_config_set_sys_trace_max_events_per_nc(config, 3), NRT_SUCCESS);
	IS(nrt_inspect_config_set_activity(config, "all", true), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_SUCCESS);
	IS(nrt_inspect_config_free(config), NRT_SUCCESS); /* so was the config */
	run_four();
	IS(nrt_inspect_stop(), NRT_SUCCESS);
}

/* nrt_checks enables ENABLE ON_FAIL: each 0 or 1. */
static void enables(char **words)
{
	nrt_inspect_config_t *config;
	nrt_model_t *failing;

	begin();
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	IS(nrt_inspect_config_set_enable_inspect(config, words[0][0] == '1'), NRT_SUCCESS);
	IS(nrt_inspect_config_set_enable_inspect_on_fail(config, words[1][0] == '1'), NRT_SUCCESS);
	IS(nrt_inspect_begin_with_options(config), NRT_SUCCESS);
	failing = load("kymo-fake-model failing\nop 0\nfail 3\n", 0);
	run(failing, 2);
	IS(nrt_execute(failing, NULL, NULL), NRT_HW_ERROR);
	run(failing, 2);
	IS(nrt_inspect_stop(), NRT_SUCCESS);
	IS(nrt_inspect_config_set_defaults(config), NRT_SUCCESS);
	IS(nrt_inspect_config_free(config), NRT_SUCCESS);
}

static void fails(char **words)
{
	nrt_model_t *failing;

	(void)words;
	begin();
	failing = load("kymo-fake-model failing\nop 0\nfail 3\n", 0);
	run(failing, 2);
	IS(nrt_execute(failing, NULL, NULL), NRT_HW_ERROR);
	run(failing, 2);
}

static void print_types(const char **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		printf("%s%s", list[i], i + 1 < count ? " " : "");
	printf("\n");
	nrt_inspect_config_free_activity_types(list, count);
}

static void activities(char **words)
{
	nrt_inspect_config_t *config;
	const char **list;
	size_t count;

	(void)words;
	IS(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
	IS(nrt_inspect_config_get_all_activity_types(&list, &count), NRT_SUCCESS);
	print_types(list, count);
	IS(nrt_inspect_config_get_enabled_activity_types(config, &list, &count), NRT_SUCCESS);
	print_types(list, count);
	IS(nrt_inspect_config_set_activity(config, "cpu_util", true), NRT_SUCCESS);
	IS(nrt_inspect_config_set_activity(config, "system_profile", false), NRT_SUCCESS);
	IS(nrt_inspect_config_get_enabled_activity_types(config, &list, &count), NRT_SUCCESS);
	print_types(list, count);
	IS(nrt_inspect_config_set_activity(config, "all", false), NRT_SUCCESS);
	IS(nrt_inspect_config_get_enabled_activity_types(config, &list, &count), NRT_SUCCESS);
	print_types(list, count);
	IS(nrt_inspect_config_set_activity(config, "all", true), NRT_SUCCESS);
	IS(nrt_inspect_config_get_enabled_activity_types(config, &list, &count), NRT_SUCCESS);
	print_types(list, count);
	IS(nrt_inspect_config_free(config), NRT_SUCCESS);
}

/* ---- ends ---- */

/* In mid-capture: nrt_checks ends exit|kill. */
static void ends(char **words)
{
	nrt_model_t *model;

	begin();
	model = fake("cut", 0);
	IS(nrt_profile_start(model, "cut.ntff"), NRT_SUCCESS);
	run(model, 25);
	if (words[0][0] == 'k')
		raise(SIGKILL);
}

static void *run_many(void *model)
{
	for (int i = 0; i < 500; i++)
		if (nrt_execute(model, NULL, NULL) != NRT_SUCCESS)
			return model;
	return NULL;
}

static void *start_and_stop(void *model)
{
	for (int i = 0; i < 5; i++)
		if (nrt_profile_start(model, "threads.ntff") != NRT_SUCCESS ||
		    nrt_profile_stop("threads.ntff") != NRT_SUCCESS)
			return model;
	return NULL;
}

static void threads(char **words)
{
	nrt_model_t *one, *other;
	pthread_t ids[6];
	void *failed;

	(void)words;
	begin();
	one = fake("one", 0);
	other = fake("other", 1);
	IS(nrt_profile_start(one, "one.ntff"), NRT_SUCCESS);
	for (int i = 0; i < 6; i++)
		TRUE(!pthread_create(&ids[i], NULL, i < 5 ? run_many : start_and_stop,
				     i < 4 ? one : other));
	for (int i = 0; i < 6; i++)
		TRUE(!pthread_join(ids[i], &failed) && !failed);
	IS(nrt_profile_stop("one.ntff"), NRT_SUCCESS);
}

static void fork_and_go_on(char **words)
{
	nrt_model_t *model;
	int status;
	pid_t child;

	(void)words;
	begin();
	model = fake("forked", 0);
	IS(nrt_profile_start(model, "parent.ntff"), NRT_SUCCESS);
	run(model, 2);
	child = fork();
	if (!child) {
		IS(nrt_execute(model, NULL, NULL), NRT_UNINITIALIZED);
		begin();
		model = fake("forked", 0);
		IS(nrt_profile_start(model, "child.ntff"), NRT_SUCCESS);
		run(model, 3);
		IS(nrt_profile_stop("child.ntff"), NRT_SUCCESS);
		exit(0);
	}
	TRUE(waitpid(child, &status, 0) == child && !status);
	run(model, 2);
	IS(nrt_profile_stop("parent.ntff"), NRT_SUCCESS);
}

/* ---- which ---- */

static const struct {
	const char *name;
	void (*check)(char **words);
} checks[] = {
#define CHECK(name) \
	{ \
#name, name \
	}
	CHECK(null_everywhere),	 CHECK(bad_arguments), CHECK(life),	   CHECK(statuses),
	CHECK(one_model),	 CHECK(full),	       CHECK(small_files), CHECK(unwritable),
	CHECK(continuous),	 CHECK(one_at_a_time), CHECK(many),	   CHECK(by_environment),
	CHECK(begin_after_init), CHECK(no_calls),      CHECK(by_null),	   CHECK(by_options),
	CHECK(enables),		 CHECK(activities),    CHECK(ends),	   CHECK(threads),
	CHECK(fork_and_go_on),	 CHECK(fails),
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].name, argv[1])) {
			checks[i].check(argv + 2);
			return 0;
		}
	fprintf(stderr, "nrt_checks: there is no such check\n");
	return 2;
}
