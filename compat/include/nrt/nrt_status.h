/* What the calls of nrt.h and nrt_profile.h return, with the numbers that programs were built
   with. */
#ifndef NRT_STATUS_H
#define NRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	NRT_SUCCESS = 0,
	NRT_FAILURE = 1, /* stderr says what, why, and what to do */
	NRT_INVALID = 2, /* NULL, or an argument or an order of calls that makes no sense */
	NRT_INVALID_HANDLE = 3,
	NRT_RESOURCE = 4, /* no memory */
	NRT_TIMEOUT = 5,
	NRT_HW_ERROR = 6, /* the device failed */
	NRT_QUEUE_FULL = 7,
	NRT_UNINITIALIZED =
		13, /* before nrt_init(), or before the start of what is to be stopped */
	NRT_CLOSED = 14 /* after nrt_close() */
} NRT_STATUS;

#ifdef __cplusplus
}
#endif

#endif
