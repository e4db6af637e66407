/* The options of an inspect session, as a program sets them. */
#include <stdlib.h>
#include <string.h>

#include "nrt_inside.h"

#define EVENTS_PER_CORE 1000000u

static const struct {
	const char *name;
	uint32_t bit;
} activities[] = {
	{ "system_profile", NRT_SYSTEM },
	{ "device_profile", NRT_DEVICE },
	{ "host_memory", NRT_HOST_MEMORY },
	{ "cpu_util", NRT_CPU_UTIL },
};
#define ACTIVITIES (sizeof(activities) / sizeof(activities[0]))
#define ALL_ACTIVITIES (NRT_SYSTEM | NRT_DEVICE | NRT_HOST_MEMORY | NRT_CPU_UTIL)

static const struct {
	const char *name, *side;
} events[] = {
#define X(upper, name, side) { name, side },
	NRT_EVENTS(X)
#undef X
};

static bool nrt_config_is_word(const char *known, const char *word, size_t bytes)
{
	return strlen(known) == bytes && !memcmp(known, word, bytes);
}

uint32_t nrt_event_bits(const char *word, size_t bytes)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < NRT_EVENT_COUNT; i++)
		if (nrt_config_is_word(events[i].name, word, bytes) ||
		    nrt_config_is_word(events[i].side, word, bytes))
			bits |= 1u << i;
	return bits;
}

void nrt_config_defaults(struct nrt_inspect_config *config)
{
	memset(config, 0, sizeof(*config));
	config->session_id = 1;
	config->activities = NRT_SYSTEM | NRT_DEVICE;
	config->events = (1u << NRT_EVENT_COUNT) - 1u;
	config->cores = UINT64_MAX;
	config->events_per_core = EVENTS_PER_CORE;
}

NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **options)
{
	if (!options)
		return NRT_INVALID;
	*options = malloc(sizeof(**options));
	if (!*options)
		return NRT_RESOURCE;
	nrt_config_defaults(*options);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *options)
{
	if (!options)
		return NRT_INVALID;
	free(options->output_dir);
	nrt_config_defaults(options);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *options)
{
	if (!options)
		return NRT_INVALID;
	free(options->output_dir);
	free(options);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *options, int session_id)
{
	if (!options)
		return NRT_INVALID;
	options->session_id = session_id;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *options, const char *output_dir)
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

NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t *options,
							      uint64_t sys_trace_max_events_per_nc)
{
	if (!options || !sys_trace_max_events_per_nc)
		return NRT_INVALID;
	options->events_per_core = sys_trace_max_events_per_nc;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *options,
							 uint32_t nc_idx, bool enabled)
{
	uint64_t bit;

	if (!options || nc_idx >= NRT_CORES)
		return NRT_INVALID;
	bit = 1ull << nc_idx;
	options->cores = enabled ? options->cores | bit : options->cores & ~bit;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(
	nrt_inspect_config_t *options, const char *event_type, bool enabled)
{
	uint32_t bits = event_type ? nrt_event_bits(event_type, strlen(event_type)) : 0;

	if (!options || !bits)
		return NRT_INVALID;
	options->events = enabled ? options->events | bits : options->events & ~bits;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *options, bool enable_inspect)
{
	if (!options)
		return NRT_INVALID;
	options->enable_called = true;
	options->enable = enable_inspect;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t *options,
							 bool enable_inspect_on_fail)
{
	if (!options)
		return NRT_INVALID;
	options->enable_called = true;
	options->on_fail = enable_inspect_on_fail;
	return NRT_SUCCESS;
}

/* ---- activities ------------------------------------------------------------------------------ */

static uint32_t activity_bits(const char *name)
{
	if (!strcmp(name, "all"))
		return ALL_ACTIVITIES;
	for (size_t i = 0; i < ACTIVITIES; i++)
		if (!strcmp(activities[i].name, name))
			return activities[i].bit;
	return 0;
}

NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *options, const char *activity_type,
					   bool enabled)
{
	uint32_t bits = activity_type ? activity_bits(activity_type) : 0;

	if (!options || !bits)
		return NRT_INVALID;
	options->activities = enabled ? options->activities | bits : options->activities & ~bits;
	return NRT_SUCCESS;
}

/* An array, and each text in memory of its own, as callers may free them one by one. */
static NRT_STATUS list_activities(uint32_t bits, const char ***out, size_t *out_count)
{
	const char **list = calloc(ACTIVITIES, sizeof(*list));
	size_t count = 0;

	*out = NULL;
	*out_count = 0;
	if (!list)
		return NRT_RESOURCE;
	for (size_t i = 0; i < ACTIVITIES; i++) {
		if (!(bits & activities[i].bit))
			continue;
		list[count] = nrt_copy(activities[i].name);
		if (!list[count]) {
			nrt_inspect_config_free_activity_types(list, count);
			return NRT_RESOURCE;
		}
		count++;
	}
	*out = list;
	*out_count = count;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***activity_types, size_t *count)
{
	if (!activity_types || !count)
		return NRT_INVALID;
	return list_activities(ALL_ACTIVITIES, activity_types, count);
}

NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t *options,
							 const char ***activity_types,
							 size_t *count)
{
	if (!options || !activity_types || !count)
		return NRT_INVALID;
	return list_activities(options->activities, activity_types, count);
}

void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count)
{
	if (!activity_types)
		return;
	for (size_t i = 0; i < count; i++)
		free((void *)activity_types[i]);
	free((void *)activity_types);
}
