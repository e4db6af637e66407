/* Inspect sessions: everything that the options let through, from begin to stop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nrt_inside.h"

static struct {
	bool runs;
	/* begun by nrt_init(), because of the environment: a begin of the program's takes its
	   place */
	bool automatic;
	uint64_t from_ticks;
	struct nrt_inspect_config config; /* its own copy */
} session;

const struct nrt_inspect_config *nrt_inspect_now(void)
{
	return session.runs ? &session.config : NULL;
}

void nrt_inspect_forget(void)
{
	session.runs = false;
}

static bool captures_something(const struct nrt_inspect_config *config)
{
	return nrt_config_captures(config) || config->on_fail;
}

/* ---- beginning ---- */

/* With both locks. Takes over what the config holds. */
static NRT_STATUS nrt_nrt_inspect_begin(struct nrt_inspect_config *config, bool automatic)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (session.runs && !session.automatic) {
		nrt_say("an inspect session is already running; call nrt_inspect_stop() first");
		return NRT_INVALID;
	}
	if (nrt_continuous_runs() && config->activities & NRT_DEVICE &&
	    captures_something(config)) {
		nrt_say("an inspect session cannot profile the device while continuous profiling "
			"does; call nrt_profile_continuous_stop() first");
		return NRT_FAILURE;
	}
	if (captures_something(config))
		status = nrt_capture_begin(config->events_per_core);
	if (status != NRT_SUCCESS)
		return status;
	free(session.config.output_dir);
	session.config = *config;
	config->output_dir = NULL;
	for (struct nrt_known *known = nrt_all_known(); known; known = known->next)
		known->inspect_seen = known->inspect_from = 0;
	session.runs = true;
	session.automatic = automatic;
	session.from_ticks = kymo_ticks();
	return NRT_SUCCESS;
}

static NRT_STATUS begin_locked(struct nrt_inspect_config *config, bool automatic)
{
	NRT_STATUS status;

	nrt_control();
	nrt_lock();
	status = nrt_nrt_inspect_begin(config, automatic);
	nrt_unlock();
	nrt_control_end();
	return status;
}

static NRT_STATUS begin_by_environment(bool automatic)
{
	struct nrt_inspect_config config;
	NRT_STATUS status = nrt_config_from_environment(&config);

	if (status != NRT_SUCCESS)
		return status;
	if (!captures_something(&config))
		nrt_say("nothing is captured: NEURON_RT_INSPECT_ENABLE is not 1");
	status = begin_locked(&config, automatic);
	free(config.output_dir);
	return status;
}

NRT_STATUS nrt_inspect_begin(void)
{
	return begin_by_environment(false);
}

NRT_STATUS nrt_inspect_begin_at_init(void)
{
	return begin_by_environment(true);
}

NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *options)
{
	struct nrt_inspect_config config;
	NRT_STATUS status;

	nrt_config_defaults(&config);
	if (options) {
		config = *options;
		config.output_dir = options->output_dir ? nrt_copy(options->output_dir) : NULL;
		if (options->output_dir && !config.output_dir)
			return NRT_RESOURCE;
	}
	if (!captures_something(&config))
		nrt_say("nothing is captured: both enable options are off");
	status = begin_locked(&config, false);
	free(config.output_dir);
	return status;
}

/* ---- while it runs ---- */

bool nrt_inspect_wants(struct nrt_known *known, uint32_t core)
{
	const struct nrt_inspect_config *config = &session.config;

	if (!session.runs || !captures_something(config))
		return false;
	if (++known->inspect_seen > config->warmup && !known->inspect_from)
		known->inspect_from = kymo_ticks();
	if (config->on_fail)
		return true;
	return config->activities & NRT_DEVICE && known->inspect_from && config->cores >> core & 1;
}

static void save_failure(const struct nrt_known *known)
{
	struct nrt_inspect_config all = session.config;
	struct nrt_selection selection = {
		.from_ticks = session.from_ticks, .model = known, .core = NRT_CORES, .config = &all
	};
	char stem[NRT_NAME_BYTES + 32];

	all.warmup = 0;
	snprintf(stem, sizeof(stem), "%s_fail_%d", known->name, (int)getpid());
	nrt_capture_save_in(session.config.output_dir, stem, &selection);
}

bool nrt_inspect_ran(NRT_STATUS status)
{
	if (!session.runs)
		return false;
	if (nrt_config_captures(&session.config))
		nrt_capture_counters(session.config.activities);
	return status != NRT_SUCCESS && session.config.on_fail;
}

void nrt_inspect_failed(const struct nrt_known *known)
{
	nrt_control();
	if (session.runs && session.config.on_fail) /* it still does */
		save_failure(known);
	nrt_control_end();
}

/* ---- stopping ---- */

static NRT_STATUS dump_one(const struct nrt_known *known)
{
	struct nrt_selection selection = { .from_ticks = session.from_ticks,
					   .model = known,
					   .core = NRT_CORES,
					   .config = &session.config };
	char stem[NRT_NAME_BYTES + 32];

	snprintf(stem, sizeof(stem), "%s_%d_%d", known ? known->name : "inspect",
		 session.config.session_id, (int)getpid());
	return nrt_capture_save_in(session.config.output_dir, stem, &selection);
}

static bool has_run(const struct nrt_known *known)
{
	bool has;

	nrt_lock();
	has = known->inspect_from != 0;
	nrt_unlock();
	return has;
}

static NRT_STATUS dump(void)
{
	NRT_STATUS status = NRT_SUCCESS;
	const struct nrt_known *known;

	if (!nrt_config_captures(&session.config))
		return NRT_SUCCESS;
	nrt_lock();
	known = session.config.file_per_model ? nrt_all_known() : NULL;
	nrt_unlock();
	for (; known && status == NRT_SUCCESS; known = known->next)
		if (has_run(known))
			status = dump_one(known);
	return status == NRT_SUCCESS ? dump_one(NULL) : status;
}

/* With control. */
static NRT_STATUS nrt_nrt_inspect_stop(void)
{
	NRT_STATUS status = dump();

	if (status != NRT_SUCCESS)
		return status;
	nrt_lock();
	session.runs = false;
	free(session.config.output_dir);
	session.config.output_dir = NULL;
	nrt_capture_end();
	nrt_unlock();
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_stop(void)
{
	NRT_STATUS status = NRT_INVALID;

	nrt_control();
	if (session.runs)
		status = nrt_nrt_inspect_stop();
	else
		nrt_say("no inspect session is running; call nrt_inspect_begin() first");
	nrt_control_end();
	return status;
}

/* Before libkymo's own end, since this library depends on it. A thread that holds the lock may be
   gone by now. */
__attribute__((destructor)) static void at_exit(void)
{
	if (!nrt_control_soon())
		return;
	nrt_say_unfinished();
	if (session.runs)
		nrt_nrt_inspect_stop();
	nrt_control_end();
}
