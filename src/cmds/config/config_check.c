#include "cmds/config/config_check.h"

#include "cmds/config/config_device.h"
#include "cmds/config/config_memory.h"
#include "cmds/config/config_python.h"

/* The pid of a child selects that child alone; that of the program selects the whole run. */
static bool is_meant(const struct config *config, const struct live_process *process)
{
	const struct live_process *named = config->pid
						   ? live_processes_find(&config->live, config->pid)
						   : NULL;

	if (!named || named->control.role == KYMO_ROLE_COLLECTOR ||
	    named->control.pid == config->live.run.target_pid)
		return true;
	return process == named;
}

bool config_is_concerned(const struct config *config, const struct live_process *process,
			 const struct settings_key *key)
{
	if (process->control.role == KYMO_ROLE_COLLECTOR)
		return key->who == SETTINGS_COLLECTOR;
	return process->control.role == KYMO_ROLE_TARGET && is_meant(config, process);
}

/* ---- memory, which may need a library to be loaded ------------------------------------------- */

bool config_changes_memory(const struct config *config)
{
	for (size_t i = 0; i < config->count; i++)
		if (config->changes[i].sets_value && config_memory_is(config->changes[i].key))
			return true;
	return false;
}

/* Fails if memory is to be turned on and no process can do it. */
static int check_memory(const struct config *config, struct kymo_error *err)
{
	const struct live_process *process_without = NULL;

	for (size_t i = 0; i < config->count; i++) {
		const struct config_change *change = &config->changes[i];

		if (!change->sets_value || !config_memory_is(change->key) || !change->value.number)
			continue;
		for (size_t k = 0; k < config->live.count; k++) {
			const struct live_process *process = &config->live.processes[k];

			if (!config_is_concerned(config, process, change->key))
				continue;
			if (config_memory_can_apply(&process->control))
				return 0;
			process_without = process;
		}
	}
	return process_without ? config_memory_refuse(&process_without->control, err) : 0;
}

/* ---- python, torch, gc and device ----------------------------------------------------------- */

static bool needs_check(const struct config_change *change)
{
	return change->sets_value && (config_python_is(change->key, &change->value) ||
				      config_device_is(change->key, &change->value));
}

static bool can_apply(const struct config_change *change, const struct kymo_control *control)
{
	if (config_device_is(change->key, &change->value))
		return config_device_can_apply(control);
	return config_python_can_apply(change->key, &change->value, control);
}

static int config_check_refuse(const struct config_change *change,
			       const struct kymo_control *control, struct kymo_error *err)
{
	if (config_device_is(change->key, &change->value))
		return config_device_refuse(control, err);
	return config_python_refuse(change->key, control, err);
}

/* Fails if no process can apply the change. */
static int check_change(const struct config *config, const struct config_change *change,
			struct kymo_error *err)
{
	const struct live_process *process_without = NULL;

	if (!needs_check(change))
		return 0;
	for (size_t i = 0; i < config->live.count; i++) {
		const struct live_process *process = &config->live.processes[i];

		if (!config_is_concerned(config, process, change->key))
			continue;
		if (can_apply(change, &process->control))
			return 0;
		process_without = process;
	}
	return process_without ? config_check_refuse(change, &process_without->control, err) : 0;
}

int config_check(const struct config *config, struct kymo_error *err)
{
	int rc = check_memory(config, err);

	for (size_t i = 0; i < config->count && !rc; i++)
		rc = check_change(config, &config->changes[i], err);
	return rc;
}

const struct live_process *config_find_pending(const struct config *config)
{
	for (size_t i = 0; i < config->live.count; i++) {
		const struct live_process *process = &config->live.processes[i];

		if (process->control.role == KYMO_ROLE_TARGET && is_meant(config, process) &&
		    config_memory_can_apply(&process->control) &&
		    !config_memory_has_applied(&process->control))
			return process;
	}
	return NULL;
}
