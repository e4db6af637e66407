/*
 * GPUs by NVML, which is loaded where it is installed: rows of host.gpu. A driver in trouble may
 * hang for minutes in any of its calls, and the collector has signals to pass on; so a thread of
 * its own asks, and nobody waits for it.
 */
#ifndef KYMO_COLLECT_HOST_GPU_H
#define KYMO_COLLECT_HOST_GPU_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to sample, with the period of this process's control page. False: no library, or no thread
   could be had. Once. */
bool gpu_start(void);
/* Ends it, at once or never: a thread that hangs is left to the end of the process. */
void gpu_stop(void);

#endif
