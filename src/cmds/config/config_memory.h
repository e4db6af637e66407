/* kymo config memory=…: whether a program can apply the change, and whether it has. */
#ifndef KYMO_CMDS_CONFIG_MEMORY_H
#define KYMO_CMDS_CONFIG_MEMORY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/format.h"
#include "base/settings.h"

/* True for the key `memory`, for which programs may load a library. */
bool config_memory_is(const struct settings_key *key);
/* The value of memory_exact that a value of `memory` implies: "on" for exact, "off" for sampled,
   else NULL. */
const char *config_memory_exact(const char *word);
/* Can the program turn the recording of allocations on? */ bool config_memory_can_apply(
	const struct kymo_control *control);
/* Is the state of the program that of its control page? */
bool config_memory_has_applied(const struct kymo_control *control);
/* Why the program cannot record allocations, and what to do: -ENOTSUP and *err. */
int config_memory_refuse(const struct kymo_control *control, struct kymo_error *err);
/* Prints on stderr when the program will apply the change. */
void config_memory_print_pending(const struct kymo_control *control);

#endif
