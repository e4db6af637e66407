/*
 * Firings for all ranks of a job. Recordings of a job are below one shared directory; a trigger
 * with `ranks = all` leaves an empty file there, and the watchers of the other recordings find it
 * at their next look. No port is open.
 */
#ifndef KYMO_TRIGGER_JOB_REQUESTS_H
#define KYMO_TRIGGER_JOB_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/format.h"

#define JOB_REQUESTS_KNOWN 256

struct job_requests {
	char directory[KYMO_PATH_BYTES]; /* "": not a part of a job */
	char self[96]; /* HOST-PID of this recording */
	char job[64];
	char from[96]; /* of the request that job_requests_next() returned */
	uint64_t known[JOB_REQUESTS_KNOWN]; /* hashes of names that were obeyed */
	size_t known_count;
	time_t since;
	uid_t owner; /* of requests that count */
};

void job_requests_init(struct job_requests *requests, const char *disk,
		       const struct kymo_run_file *run);
void job_requests_send(struct job_requests *requests, const char *trigger, uint64_t number);
/* The trigger of a request of another recording; each is returned once. False: there is none. */
bool job_requests_next(struct job_requests *requests, char *out, size_t out_bytes);

#endif
