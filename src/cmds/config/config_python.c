#include "cmds/config/config_python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The extensions that read a switch. The one that kymo run injects contains kymo._gc; the one for
   torch is loaded with torch itself, which may come later. */
static const char *const extensions[] = { "/kymo/_gc.", "/kymo/_torch.",
					  "/kymo/_inject/sitecustomize." };

static bool is_calls(const struct settings_key *key)
{
	return !strcmp(key->name, "python");
}

/* Off is what a program without the extension records. The hooks for calls are set at the start
   only. */
bool config_python_is(const struct settings_key *key, const struct settings_value *value)
{
	return is_calls(key) ||
	       (value->number && (!strcmp(key->name, "torch") || !strcmp(key->name, "gc")));
}

static bool maps_extension(const char *line)
{
	for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
		if (strstr(line, extensions[i]))
			return true;
	return false;
}

/* A map that cannot be read, such as of a container, refuses nothing. */
static bool has_extension(int32_t pid)
{
	char path[32], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return true;
	while (!found && getline(&line, &room, maps) > 0)
		found = maps_extension(line);
	free(line);
	fclose(maps);
	return found;
}

bool config_python_can_apply(const struct settings_key *key, const struct settings_value *value,
			     const struct kymo_control *control)
{
	struct settings_value now;

	settings_load(key, control, &now);
	return settings_equal(key, &now, value) || (!is_calls(key) && has_extension(control->pid));
}

int config_python_refuse(const struct settings_key *key, const struct kymo_control *control,
			 struct kymo_error *err)
{
	int pid = control->pid;

	if (is_calls(key))
		return error_set(err, ENOTSUP,
				 "python of pid %d cannot be changed: calls are recorded from the "
				 "start of the program or never; start it with kymo run --python, "
				 "or let kymo attach %d sample its stacks",
				 pid, pid);
	return error_set(err, ENOTSUP,
			 "%s of pid %d cannot be turned on: it has not loaded kymo's extension of "
			 "Python; start it with kymo run%s",
			 key->name, pid, strcmp(key->name, "torch") ? "" : " --torch");
}
