/* kymo run: records programs that are marked with Intel's ITT API. */
#ifndef KYMO_CMDS_RUN_RUN_ITT_H
#define KYMO_CMDS_RUN_RUN_ITT_H

#include "cmds/run/run_python.h"

/* Names libkymo_itt.so in INTEL_LIBITTNOTIFY64, which marked programs load. Nothing if the user has
   set the variable, or if the library is not installed. */
void run_itt_prepare(struct run_environment *environment);

#endif
