/*
 * libkymo_cupti.so: records the work of CUDA programs. The driver loads it at cuInit()
 * (CUDA_INJECTION64_PATH) and calls InitializeInjection().
 *
 *	cupti_abi.h       CUPTI's structs and functions
 *	cupti_start.c     the entry; arming, disarming, fork, the end
 *	cupti_library.c   finds libcupti
 *	cupti_calls.c     callbacks of the program's calls: launches, waits, errors
 *	cupti_launches.c  what was open at a launch, by correlation
 *	cupti_names.c     names of kernels and functions
 *	cupti_buffers.c   buffers that CUPTI fills
 *	cupti_decode.c    records to operations
 *	cupti_objects.c   devices, contexts, streams
 *	cupti_clock.c     CUPTI's time
 *	cupti_share.c     other users of CUPTI: torch.profiler
 *	cupti_patch.c     redirects their calls
 *
 * No threads, no malloc, and no locks that block. Everything has a fixed size; what does not fit is
 * not recorded, and counted.
 */
#ifndef KYMO_RECORD_CUPTI_CUPTI_H
#define KYMO_RECORD_CUPTI_CUPTI_H

#include <stdbool.h>

#include <kymo/device.h>

#include "record/cupti/cupti_abi.h"

extern struct cupti_api cupti_api; /* complete before anything else is called */

/* ---- cupti_start.c ------------------------------------------------------------------------ */

enum cupti_state {
	CUPTI_OFF, /* no driver, another tool, or a forked child */
	CUPTI_ARMED,
	CUPTI_YIELDED, /* another user has the buffers */
};
extern uint32_t cupti_state; /* atomic */
extern cupti_handle cupti_subscriber; /* NULL: none */
extern bool cupti_several; /* CUPTI has several subscribers: nothing is shared */

/* Begins to collect activities, or ends it. The subscription stays. */
void cupti_activities_begin(void);
void cupti_activities_end(void);
bool cupti_collects(uint32_t kind);
void cupti_stop(void); /* gives up CUPTI, until the end of the process */
/* Occasional work; the program called CUDA. */
void cupti_poll(uint64_t now_ticks);
void cupti_poll_begin(void);
void cupti_mark(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cupti_gap(const char *cause, uint64_t start_ticks, uint64_t end_ticks, uint64_t events);
/* The text of a result of CUPTI; never NULL. */
const char *cupti_result_text(int result);

/* ---- cupti_library.c ---------------------------------------------------------------------- */

/* Fills the table from the libcupti that is loaded, else from one that belongs to this CUDA. False:
   there is none. */
bool cupti_library_find(struct cupti_api *api);

/* ---- cupti_calls.c ------------------------------------------------------------------------ */

/* Chooses the calls of interest by their names. */
void cupti_calls_enable(cupti_handle subscriber);
void cupti_on_call(void *user, uint32_t domain, uint32_t id, const void *data);
bool cupti_calls_wants(uint32_t domain, uint32_t id);
extern uint64_t cupti_launch_count; /* atomic */
uint64_t cupti_launch_cost(void); /* ticks of a launch, at best */

/* ---- cupti_launches.c --------------------------------------------------------------------- */

struct cupti_launch {
	uint32_t correlation; /* 0: being written; atomic, stored last */
	uint32_t name; /* of the kernel; 0: unknown */
	uint32_t call; /* name of the function */
	uint32_t flags; /* KYMO_DEVICE_BLOCKING */
	uint64_t call_ticks; /* duration of the call; 0: it has not returned; atomic */
	struct kymo_device_launch launch;
};

struct cupti_launch *cupti_launch_begin(uint32_t correlation);
void cupti_launch_publish(struct cupti_launch *launch, uint32_t correlation);
void cupti_launch_returned(uint32_t correlation, uint64_t ticks);
/* False: unknown, or overwritten by a later one. */
bool cupti_launch_find(uint32_t correlation, struct cupti_launch *out);

/* ---- cupti_names.c ------------------------------------------------------------------------ */

uint32_t cupti_kernel_name(const char *symbol); /* 0: none */
void cupti_names_forget(void); /* a module is unloaded: its texts may move */
uint32_t cupti_text_name(const char *text); /* a static text */

/* ---- cupti_buffers.c, cupti_decode.c ------------------------------------------------------- */

#define CUPTI_BUFFER_BYTES 262144u
#define CUPTI_BUFFERS_MOST 64u

cupti_buffer_request cupti_on_request;
cupti_buffer_complete cupti_on_complete;
cupti_buffer_request_2 cupti_on_request_2;
cupti_buffer_complete_2 cupti_on_complete_2;
bool cupti_buffers_mine(const uint8_t *buffer);

/* Records of a buffer that CUPTI has returned. */
void cupti_decode(uint8_t *buffer, size_t valid_bytes);
void cupti_decode_end(void); /* writes executions that are still collected */

/* ---- cupti_objects.c ---------------------------------------------------------------------- */

struct cupti_queue {
	uint64_t key; /* atomic; stored last */
	uint32_t id; /* in the recording; 0: not recorded */
	uint32_t device; /* in the recording */
	uint32_t number; /* of the device, by CUDA */
	uint32_t depends_after; /* correlation of a cudaStreamWaitEvent(); atomic */
};

uint32_t cupti_device(uint32_t device); /* 0: too many */
/* NULL: too many. */
struct cupti_queue *cupti_queue(uint32_t device, uint32_t context, uint32_t stream);
/* A queue of that context and stream, or one of the context; NULL: none was seen. */
struct cupti_queue *cupti_queue_of_context(uint32_t context, uint32_t stream);

/* ---- cupti_clock.c ------------------------------------------------------------------------ */

/* Makes CUPTI use kymo's clock if it can. */
void cupti_clock_begin(void);
int cupti_clock_now(void *context, uint32_t local, uint64_t *out_ns); /* for kymo */
/* Sets the times and their flags. 0 is unknown. */
void cupti_clock_set(struct kymo_device_op *op, uint64_t queued, uint64_t submit, uint64_t start,
		     uint64_t end);
uint64_t cupti_clock_ticks(uint64_t ns); /* of a time of CUPTI; 0: not known */
/* A row of device work: it cannot begin before it was launched. */
void cupti_clock_check(const struct kymo_device_op *op);

/* ---- cupti_share.c, cupti_patch.c ---------------------------------------------------------- */

/* Passes a callback on to the other user, if that has asked for it. */
void cupti_share_pass_on(uint32_t domain, uint32_t id, const void *data);
void cupti_share_forget(void);

struct cupti_hook {
	const char *name;
	void *function;
};
extern const struct cupti_hook cupti_hooks[]; /* ends with NULL */
/* Redirects the calls of all loaded objects; again when more were loaded. */
void cupti_patch(void);

#endif
