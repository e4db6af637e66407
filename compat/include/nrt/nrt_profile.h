/*
 * Profiles of models on a device, recorded by kymo:
 *
 *	nrt_profile_start(model, "resnet.ntff");
 *	...				nrt_execute(), as often as you like
 *	nrt_profile_stop("resnet.ntff");
 *
 *	$ kymo report resnet.ntff	latency per model and core
 *	$ kymo query resnet.ntff "FROM device.ops"
 *	$ kymo pack resnet.ntff resnet.kymo		for any DuckDB client
 *
 * A file has the name that the caller gave it, whatever its ending, and is a kymo snapshot:
 * complete when it appears (written aside, then renamed), so that an older file of that name is
 * whole until then. Until a file is saved the rows are in kymo's recording of the process, which
 * outlives it: after an exit or a SIGKILL in mid-capture `kymo query latest "FROM device.ops"` has
 * what was recorded.
 *
 * Rows are kept in rings that are bounded: what a long capture overwrote is counted in the file
 * (kymo.streams).
 *
 * All calls are thread-safe and return NRT_INVALID for NULL or an invalid handle. Details of an
 * error are printed on stderr. With KYMO=off in the environment, start and begin return
 * NRT_FAILURE.
 */
#ifndef NRT_PROFILE_H
#define NRT_PROFILE_H

#include "nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one model ----------------------------------------------------------------------------- */

/* From now on the model's executions, and no other model's, are for that file. Several models at
   once, each with a file of its own. NRT_INVALID: NULL, an empty filename, no loaded model, a model
   that is being profiled already, a filename that is in use; NRT_RESOURCE; NRT_FAILURE: nothing can
   be recorded. */
NRT__EXPORT NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename);
/* Writes the file and ends that profile. NRT_INVALID: no start with that filename. NRT_FAILURE: it
   cannot be written; the profile goes on, so that stop can be tried again, and an older file is
   whole. */
NRT__EXPORT NRT_STATUS nrt_profile_stop(const char *filename);

/* ---- continuous: a flight recorder ----------------------------------------------------------- */

/* Where save writes: "./output" unless set. */
typedef struct nrt_profile_continuous_options nrt_profile_continuous_options_t;

NRT__EXPORT NRT_STATUS
nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options);
NRT__EXPORT NRT_STATUS
nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options);
/* Copied. NULL or empty: NRT_INVALID; no memory: NRT_RESOURCE, and the one that was set before
   stays. */
NRT__EXPORT NRT_STATUS nrt_profile_continuous_options_set_output_dir(
	nrt_profile_continuous_options_t *options, const char *output_dir);

/* Every model is profiled, in memory. NRT_INVALID: NULL, or it runs already; NRT_FAILURE: an
   inspect session profiles the device. */
NRT__EXPORT NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options);
/* Writes the executions of the latest model on that core that are still in the ring, newest last,
   as DIR/MODEL_vncK_N.kymo, N from 1; it does not stop. NRT_UNINITIALIZED: before start;
   NRT_INVALID: NULL, or nothing has run on that core since start; NRT_FAILURE: the directory cannot
   be made or written. */
NRT__EXPORT NRT_STATUS nrt_profile_continuous_save(uint32_t vnc,
						   nrt_profile_continuous_options_t *options);
/* Saves nothing. NRT_UNINITIALIZED: before start. */
NRT__EXPORT NRT_STATUS nrt_profile_continuous_stop(void);

/* ---- inspect: a session with everything ------------------------------------------------------ */

/*
 * nrt_inspect_begin() takes its options from the environment:
 *
 * NEURON_RT_INSPECT_…, with the default first:
 *
 *	ENABLE			0: nothing is captured; begin succeeds with a warning. 1: captures
 *	OUTPUT_DIR		./output
 *	SYSTEM_PROFILE		1: calls of the runtime, as zones
 *	DEVICE_PROFILE		1 or session: operations of the device, one file for all;
 *				model: also a file for each model; 0: none
 *	DEVICE_PROFILE_NUM_WARMUP	0: number of executions of each model to skip
 *	ON_FAIL			0; 1: writes a file whenever an execution fails
 *	CPU_UTIL, HOST_MEMORY	0; 1: of this process, as counters
 *	EVENT_FILTER_NC		only these cores: 0,2,4-7
 *	EVENT_FILTER_TYPE	only these events: names, hardware, software; ^name excludes one.
 *				nrt_load, nrt_unload, nrt_execute are software; execution, kernel,
 *				copy are hardware
 *	SYS_TRACE_MAX_EVENTS_PER_NC	1000000; the oldest are overwritten
 *
 * A misspelled variable is reported, with the nearest name.
 *
 * Files, with N from 1: DIR/inspect_SESSION_PID_N.kymo; with model also MODEL_SESSION_PID_N.kymo;
 * with ON_FAIL MODEL_fail_PID_N.kymo. A session that runs when the program exits is dumped then.
 */
/* NRT_INVALID: a session runs already; NRT_FAILURE: continuous mode profiles the device. */
NRT__EXPORT NRT_STATUS nrt_inspect_begin(void);
/* Stops, and writes the files. NRT_INVALID: no session runs. NRT_FAILURE: they cannot be written;
   the session goes on, so that stop can be tried again. */
NRT__EXPORT NRT_STATUS nrt_inspect_stop(void);

typedef struct nrt_inspect_config nrt_inspect_config_t;

/* With options from here, and none from the environment. NULL, or options on which neither enable
   setter was called: system and device are captured. */
NRT__EXPORT NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *options);

/* All defaults. NRT_RESOURCE: no memory, and *options is NULL. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **options);
/* Session 1, "./output", system_profile and device_profile, all cores and events, 1,000,000 events
   for each core, neither enable setter called. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *options);
NRT__EXPORT NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *options);
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *options,
							 int session_id);
/* Copied. NULL or empty: NRT_INVALID; no memory: NRT_RESOURCE, and the one that was set before
   stays. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *options,
							 const char *output_dir);
/* 0: NRT_INVALID. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(
	nrt_inspect_config_t *options, uint64_t sys_trace_max_events_per_nc);
/* A core that cannot be, 64 or more: NRT_INVALID. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *options,
								     uint32_t nc_idx, bool enabled);
/* The names of EVENT_FILTER_TYPE, hardware and software too; another: NRT_INVALID. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(
	nrt_inspect_config_t *options, const char *event_type, bool enabled);
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *options,
							     bool enable_inspect);
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t *options,
								     bool enable_inspect_on_fail);
/* system_profile, device_profile, host_memory, cpu_util, or all; another: NRT_INVALID. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *options,
						       const char *activity_type, bool enabled);
/* An array of so many texts, to be freed by the last of these. */
NRT__EXPORT NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***activity_types,
								 size_t *count);
NRT__EXPORT NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t *options,
								     const char ***activity_types,
								     size_t *count);
NRT__EXPORT void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count);

#ifdef __cplusplus
}
#endif

#endif
