/*
 * Clocks of hosts, aligned by the collectives that their ranks took part in (clocks/clock_fit.h).
 *
 * Runs of one boot share a clock: nothing is estimated between them. Ranks of an imported trace may
 * be of any host: each is a domain of its own, and its times stay as they are unless the trace
 * shows that its clock differs. Reading is bounded: of a large job a part of the collectives is
 * taken.
 */
#ifndef KYMO_STORE_HOST_CLOCKS_H
#define KYMO_STORE_HOST_CLOCKS_H

#include "store/store.h"

struct clock_calls; /* store/clocks/clock_calls.h */

#define HOST_CLOCKS_IMPORTED "imported" /* boot_id of an imported recording */

/* Sets process->domain and recording->host_clocks, and moves all times of the recording, which are
   on the wall clocks of their hosts until then. Out of memory: clocks stay as they are. */
void host_clocks_align(struct recording *recording);
/* By calls that the caller has read, sorted as clock_calls_read() sorts them; takes their list. The
   recording may consist of runs and processes alone. */
void host_clocks_align_calls(struct recording *recording, struct clock_calls *calls);

#endif
