/* Profiles of one model, identified by their file names, and continuous profiling of all models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrt_inside.h"

#define CONTINUOUS_ROWS 131072u /* that a ring keeps, so that a save has 100,000 and more */

/* ---- one model ------------------------------------------------------------------------------ */

struct profile {
	struct profile *next;
	struct nrt_known *known;
	uint64_t from_ticks;
	char *filename;
};

static struct profile *profiles;

bool nrt_is_profiled(const struct nrt_known *known)
{
	for (const struct profile *profile = profiles; profile; profile = profile->next)
		if (profile->known == known)
			return true;
	return false;
}

static struct profile **find_profile(const char *filename)
{
	struct profile **at = &profiles;

	while (*at && strcmp((*at)->filename, filename) != 0)
		at = &(*at)->next;
	return at;
}

static NRT_STATUS add_profile(struct nrt_known *known, const char *filename)
{
	struct profile *profile = calloc(1, sizeof(*profile));
	NRT_STATUS status = NRT_RESOURCE;

	if (profile)
		profile->filename = nrt_copy(filename);
	if (profile && profile->filename)
		status = nrt_capture_begin(CONTINUOUS_ROWS);
	if (status != NRT_SUCCESS) {
		if (profile)
			free(profile->filename);
		free(profile);
		return status;
	}
	profile->known = known;
	profile->from_ticks = kymo_ticks();
	profile->next = profiles;
	profiles = profile;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_profile_start(nrt_model_t *handle, const char *filename)
{
	struct nrt_model *model;
	NRT_STATUS status = NRT_INVALID;

	if (!handle || !filename || !*filename)
		return NRT_INVALID;
	nrt_control();
	nrt_lock();
	model = nrt_find_model(handle);
	if (!model)
		nrt_say("cannot profile into %s: the model is not loaded", filename);
	else if (nrt_is_profiled(model->known))
		nrt_say("cannot profile %s into %s: it is already being profiled",
			model->known->name, filename);
	else if (*find_profile(filename))
		nrt_say("cannot profile %s into %s: another model is being profiled into that file",
			model->known->name, filename);
	else
		status = add_profile(model->known, filename);
	nrt_unlock();
	nrt_control_end();
	return status;
}

NRT_STATUS nrt_profile_stop(const char *filename)
{
	struct nrt_selection selection = { .core = NRT_CORES };
	struct profile **at, *profile;
	NRT_STATUS status = NRT_INVALID;

	if (!filename || !*filename)
		return NRT_INVALID;
	nrt_control();
	at = find_profile(filename);
	profile = *at;
	if (!profile) {
		nrt_say("cannot stop the profile into %s: no profile with that name was started",
			filename);
	} else {
		selection.from_ticks = profile->from_ticks;
		selection.model = profile->known;
		status = nrt_capture_save(filename, &selection);
	}
	if (status == NRT_SUCCESS) {
		nrt_lock();
		*at = profile->next;
		nrt_capture_end();
		nrt_unlock();
		free(profile->filename);
		free(profile);
	}
	nrt_control_end();
	return status;
}

void nrt_say_unfinished(void)
{
	for (const struct profile *profile = profiles; profile; profile = profile->next)
		nrt_say("the profile into %s was not stopped, so the file was not written; the "
			"recorded rows are in %s",
			profile->filename, kymo_directory());
}

/* ---- continuous ------------------------------------------------------------------------------ */

struct nrt_profile_continuous_options {
	char *output_dir; /* NULL: ./output */
};

static struct {
	bool runs;
	uint64_t from_ticks;
	struct nrt_known *latest[NRT_CORES]; /* that ran since the start */
} continuous;

NRT_STATUS nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options)
{
	if (!options)
		return NRT_INVALID;
	*options = calloc(1, sizeof(**options));
	return *options ? NRT_SUCCESS : NRT_RESOURCE;
}

NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options)
{
	if (!options)
		return NRT_INVALID;
	free(options->output_dir);
	free(options);
	return NRT_SUCCESS;
}

NRT_STATUS
nrt_profile_continuous_options_set_output_dir(nrt_profile_continuous_options_t *options,
					      const char *output_dir)
{
	char *copy;

	if (!options || !output_dir || !*output_dir)
		return NRT_INVALID;
	copy = nrt_copy(output_dir);
	if (!copy)
		return NRT_RESOURCE;
	free(options->output_dir);
	options->output_dir = copy;
	return NRT_SUCCESS;
}

void nrt_profiles_forget(void)
{
	profiles = NULL;
	continuous.runs = false;
}

bool nrt_profiles_run(void)
{
	return profiles || continuous.runs;
}

bool nrt_continuous_runs(void)
{
	return continuous.runs;
}

void nrt_continuous_ran(uint32_t core, struct nrt_known *known)
{
	continuous.latest[core] = known;
}

NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options)
{
	const struct nrt_inspect_config *inspect;
	NRT_STATUS status = NRT_INVALID;

	if (!options)
		return NRT_INVALID;
	nrt_control();
	nrt_lock();
	inspect = nrt_inspect_now();
	if (continuous.runs) {
		nrt_say("continuous profiling is already running");
	} else if (inspect && inspect->activities & NRT_DEVICE) {
		nrt_say("continuous profiling cannot start while an inspect session profiles the "
			"device; call nrt_inspect_stop() first");
		status = NRT_FAILURE;
	} else {
		status = nrt_capture_begin(CONTINUOUS_ROWS);
	}
	if (status == NRT_SUCCESS) {
		memset(&continuous, 0, sizeof(continuous));
		continuous.runs = true;
		continuous.from_ticks = kymo_ticks();
	}
	nrt_unlock();
	nrt_control_end();
	return status;
}

/* The model that ran last on that core; NULL: none has since the start. */
static const struct nrt_known *latest_on(uint32_t vnc)
{
	const struct nrt_known *known;

	nrt_lock();
	known = vnc < NRT_CORES ? continuous.latest[vnc] : NULL;
	nrt_unlock();
	return known;
}

static NRT_STATUS save(uint32_t vnc, const char *directory)
{
	const struct nrt_known *known = latest_on(vnc);
	struct nrt_selection selection = { .from_ticks = continuous.from_ticks,
					   .model = known,
					   .core = vnc };
	char stem[NRT_NAME_BYTES + 16];

	if (!known) {
		nrt_say("nothing to save: no model has run on core %u since the start", vnc);
		return NRT_INVALID;
	}
	snprintf(stem, sizeof(stem), "%s_vnc%u", known->name, vnc);
	return nrt_capture_save_in(directory, stem, &selection);
}

NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, nrt_profile_continuous_options_t *options)
{
	NRT_STATUS status;

	if (!options)
		return NRT_INVALID;
	nrt_control();
	status = continuous.runs ? save(vnc, options->output_dir) : NRT_UNINITIALIZED;
	nrt_control_end();
	return status;
}

NRT_STATUS nrt_profile_continuous_stop(void)
{
	NRT_STATUS status;

	nrt_control();
	nrt_lock();
	status = continuous.runs ? NRT_SUCCESS : NRT_UNINITIALIZED;
	continuous.runs = false;
	nrt_capture_end();
	nrt_unlock();
	nrt_control_end();
	return status;
}
