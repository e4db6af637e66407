/* How the checks of nrt.h ask, and what they run. */
#ifndef NRT_CHECKS_H
#define NRT_CHECKS_H

#include <nrt/nrt_profile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(call, wanted) is(#call, (call), (wanted), __LINE__)
#define TRUE(what) is_true(#what, (what), __LINE__)

static inline void is(const char *call, NRT_STATUS got, NRT_STATUS wanted, int line)
{
	if (got == wanted)
		return;
	printf("line %d: %s is %s, and not %s\n", line, call, nrt_get_status_as_str(got),
	       nrt_get_status_as_str(wanted));
	exit(1);
}

static inline void is_true(const char *what, bool got, int line)
{
	if (got)
		return;
	printf("line %d: not so: %s\n", line, what);
	exit(1);
}

static inline nrt_model_t *load(const char *text, int core)
{
	nrt_model_t *model = NULL;

	IS(nrt_load(text, strlen(text), core, 1, &model), NRT_SUCCESS);
	TRUE(model != NULL);
	return model;
}

static inline nrt_model_t *fake(const char *name, int core)
{
	char text[128];

	snprintf(text, sizeof(text), "kymo-fake-model %s\nfirst 0\nsecond 0\n", name);
	return load(text, core);
}

static inline void run(nrt_model_t *model, int times)
{
	for (int i = 0; i < times; i++)
		IS(nrt_execute(model, NULL, NULL), NRT_SUCCESS);
}

static inline void begin(void)
{
	IS(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
}

static inline nrt_profile_continuous_options_t *options_for(const char *directory)
{
	nrt_profile_continuous_options_t *options = NULL;

	IS(nrt_profile_continuous_options_allocate(&options), NRT_SUCCESS);
	IS(nrt_profile_continuous_options_set_output_dir(options, directory), NRT_SUCCESS);
	return options;
}

#endif
