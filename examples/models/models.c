/*
 * Two models on two cores of an OpenCL device, profiled in all the ways that nrt_profile.h has:
 *
 *	models FOLDER OUTPUT		FOLDER has scale.cl and blur.cl
 *
 *	OUTPUT/scale.ntff		one model's executions
 *	OUTPUT/scale_vnc0_1.kymo	continuous: what each core had run last
 *	OUTPUT/blur_vnc1_1.kymo
 *	OUTPUT/inspect_1_PID_1.kymo	a session by the environment
 *	OUTPUT/inspect_2_PID_1.kymo	a session by options
 *
 * Build: cc models.c $(pkg-config --cflags --libs kymo-nrt). Then: kymo report OUTPUT/scale.ntff
 */
#include <nrt/nrt_profile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RUNS 50

/* What cannot be done ends the program; a real one would run on without its profile. */
static void must(NRT_STATUS status, const char *what)
{
	if (status == NRT_SUCCESS)
		return;
	fprintf(stderr, "models: %s: %s\n", what, nrt_get_status_as_str(status));
	exit(1);
}

static nrt_model_t *load(const char *folder, const char *name, int core)
{
	char path[512], text[4096];
	nrt_model_t *model;
	FILE *file;
	size_t bytes;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file) {
		perror(path);
		exit(1);
	}
	bytes = fread(text, 1, sizeof(text), file);
	fclose(file);
	must(nrt_load(text, bytes, core, 1, &model), path);
	return model;
}

static void run(nrt_model_t *scale, nrt_model_t *blur)
{
	for (int i = 0; i < RUNS; i++) {
		must(nrt_execute(scale, NULL, NULL), "scale");
		must(nrt_execute(blur, NULL, NULL), "blur");
	}
}

static void profile_one(nrt_model_t *scale, nrt_model_t *blur, const char *output)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/scale.ntff", output);
	must(nrt_profile_start(scale, path), "start");
	run(scale, blur);
	must(nrt_profile_stop(path), "stop");
}

static void profile_all(nrt_model_t *scale, nrt_model_t *blur, const char *output)
{
	nrt_profile_continuous_options_t *options;

	must(nrt_profile_continuous_options_allocate(&options), "options");
	must(nrt_profile_continuous_options_set_output_dir(options, output), "output directory");
	must(nrt_profile_continuous_start(options), "continuous start");
	run(scale, blur);
	must(nrt_profile_continuous_save(0, options), "save of core 0");
	must(nrt_profile_continuous_save(1, options), "save of core 1");
	must(nrt_profile_continuous_stop(), "continuous stop");
	must(nrt_profile_continuous_options_free(options), "free");
}

static void inspect_by_environment(nrt_model_t *scale, nrt_model_t *blur, const char *output)
{
	/* As the person who starts the program would. */
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", output, 1);
	must(nrt_inspect_begin(), "inspect begin");
	run(scale, blur);
	must(nrt_inspect_stop(), "inspect stop");
}

static void inspect_by_options(nrt_model_t *scale, nrt_model_t *blur, const char *output)
{
	nrt_inspect_config_t *config;

	must(nrt_inspect_config_allocate(&config), "config");
	must(nrt_inspect_config_set_output_dir(config, output), "output directory");
	must(nrt_inspect_config_set_session_id(config, 2), "session");
	must(nrt_inspect_config_set_activity(config, "host_memory", true), "activity");
	must(nrt_inspect_config_set_capture_enabled_for_nc(config, 1, false), "core 1");
	must(nrt_inspect_begin_with_options(config), "inspect begin with options");
	run(scale, blur);
	must(nrt_inspect_stop(), "inspect stop");
	must(nrt_inspect_config_free(config), "free");
}

int main(int argc, char **argv)
{
	nrt_model_t *scale, *blur;

	if (argc != 3) {
		fprintf(stderr, "usage: models FOLDER OUTPUT\n");
		return 2;
	}
	mkdir(argv[2], 0777);
	must(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "init");
	scale = load(argv[1], "scale.cl", 0);
	blur = load(argv[1], "blur.cl", 1);
	profile_one(scale, blur, argv[2]);
	profile_all(scale, blur, argv[2]);
	inspect_by_environment(scale, blur, argv[2]);
	inspect_by_options(scale, blur, argv[2]);
	nrt_close();
	return 0;
}
