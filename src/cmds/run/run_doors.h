/* kymo run: records programs that are marked with the API of another tool. */
#ifndef KYMO_CMDS_RUN_RUN_DOORS_H
#define KYMO_CMDS_RUN_RUN_DOORS_H

#include "cmds/run/run_python.h"

/* Names libkymo_itt.so and libkymo_nvtx.so in the variables of their APIs, by which marked programs
   load them. A variable that the user has set stays as it is. */
void run_doors_prepare(struct run_environment *environment);

#endif
