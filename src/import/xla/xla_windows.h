/* Windows of XLA's operations (base/files/xla_window.h) become zones of the recording. */
#ifndef KYMO_IMPORT_XLA_XLA_WINDOWS_H
#define KYMO_IMPORT_XLA_XLA_WINDOWS_H

#include <stdint.h>

#include "base/error.h"

/* Adds to each process of the recording, a directory whose processes have ended, a stream of
   trace.zones with the operations of its windows in the file. Those of processes that still run are
   left out. 0 and the number of zones, or a negative errno and *err. */
int xla_windows_add(const char *recording, int file, uint64_t *out_zones, struct kymo_error *err);

#endif
