/*
 * GPU metrics from NVML, which is loaded if installed: rows of host.gpu. A faulty driver may hang
 * for minutes in any call, and the collector has to pass signals on, so a separate thread samples
 * and the collector never waits for it.
 */
#ifndef KYMO_COLLECT_HOST_GPU_H
#define KYMO_COLLECT_HOST_GPU_H

#include <stdbool.h>
#include <stdint.h>

/* Starts sampling with the period in this process's control page. False: no library or no thread.
   To be called once. */
bool gpu_start(void);
/* Stops sampling. A thread that hangs is left until the process ends. */
void gpu_stop(void);

#endif
