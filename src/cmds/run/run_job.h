/* kymo run -o DIR/: the recording is one of a job, in a directory that hosts or ranks share. */
#ifndef KYMO_CMDS_RUN_RUN_JOB_H
#define KYMO_CMDS_RUN_RUN_JOB_H

#include "collect/collect.h"

struct run_job {
	char id[96]; /* "": none was found */
	char directory[KYMO_PATH_BYTES]; /* of the job; "": the recording is not in one */
	char recording[KYMO_PATH_BYTES]; /* in it */
};

/* Finds the job's id and this process's rank in the environment (KYMO_JOB, or the variables of
   torchrun, srun, mpirun and Ray). If the wanted directory ends with a slash, or is that of a job,
   makes DIR/ID (or DIR) a job's directory, and options->directory one in it: HOST-rankN-PID. A
   failure leaves the directory as it was. */
void run_job_prepare(struct run_job *job, struct collect_options *options);

#endif
