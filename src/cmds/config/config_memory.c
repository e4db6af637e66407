#include "cmds/config/config_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "record/adapter.h"

bool config_memory_is(const struct settings_key *key)
{
	return !strcmp(key->name, "memory");
}

const char *config_memory_exact(const char *word)
{
	if (!strcasecmp(word, "exact"))
		return "on";
	return !strcasecmp(word, "sampled") ? "off" : NULL;
}

bool config_memory_can_apply(const struct kymo_control *control)
{
	return control->memory_heard & (KYMO_HEARD_PRELOADED | KYMO_HEARD_POLLED) &&
	       !(control->memory_heard & KYMO_HEARD_REFUSED);
}

bool config_memory_has_applied(const struct kymo_control *control)
{
	return kymo__memory_wanted(control->on) == control->memory_followed;
}

int config_memory_refuse(const struct kymo_control *control, struct kymo_error *err)
{
	if (control->memory_heard & KYMO_HEARD_REFUSED)
		return error_set(err, ENOTSUP,
				 "pid %d cannot record allocations: libkymo_memory.so.0 is not "
				 "next to its libkymo.so, or its C library is not glibc; start it "
				 "with kymo run --memory",
				 control->pid);
	return error_set(err, ENOTSUP,
			 "pid %d cannot record allocations: it was started without "
			 "libkymo_memory.so and never calls kymo_poll(), which could load it; "
			 "start it with kymo run --memory=off -- … to turn memory on later",
			 control->pid);
}

void config_memory_print_pending(const struct kymo_control *control)
{
	fprintf(stderr, "kymo: pid %d has not applied the change yet; it does so at its next %s\n",
		control->pid,
		control->memory_heard & KYMO_HEARD_PRELOADED
			? "allocation"
			: "kymo_poll(); in Python, at its next region, step, torch module or "
			  "garbage collection");
}
