/* kymo config memory=…: whether a program can follow, and whether it has. */
#ifndef KYMO_CMDS_CONFIG_MEMORY_H
#define KYMO_CMDS_CONFIG_MEMORY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/format.h"
#include "base/settings.h"

/* The key `memory`, which libraries are loaded for. */
bool config_memory_is(const struct settings_key *key);
/* "on" or "off" for memory_exact where the word of `memory` says it as well: exact, sampled; else
   NULL. */
const char *config_memory_exact(const char *word);
bool config_memory_hears(const struct kymo_control *control);
/* Has it done what its page asks for? */
bool config_memory_has_followed(const struct kymo_control *control);
/* Why a program that does not hear cannot be watched, and what to do: -ENOTSUP and *err. */
int config_memory_refuse(const struct kymo_control *control, struct kymo_error *err);
/* When it will, to standard error. */
void config_memory_say_when(const struct kymo_control *control);

#endif
