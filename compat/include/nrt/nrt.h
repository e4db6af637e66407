/*
 * Models on a device, to the extent needed to profile them (nrt_profile.h): programs that were
 * written for the Neuron runtime compile unchanged, and run where there is no such device. Link
 * with `pkg-config --libs kymo-nrt`, or with -lkymo_compat -lkymo.
 *
 * A model here is one of two texts:
 *
 *	OpenCL C	An execution runs each kernel once, in the order of the text, on an OpenCL
 *			device (libOpenCL is loaded at run time). The n-th pointer argument of every
 *			kernel is the n-th buffer of the model; numbers are the size of the run.
 *			Without an OpenCL device, a stand-in on the host computes nothing; a message
 *			on stderr and the device name "host stand-in" in the recording show it.
 *	a fake		"kymo-fake-model NAME", then one line per operation: "OPERATION
 *			MICROSECONDS". It only takes that time. A line "fail N" makes every N-th
 *			execution fail. For tests.
 *
 * A line "// kymo-model: name=NAME size=N" anywhere in an OpenCL text names it (else it is called
 * as its first kernel) and says how many work items a kernel has (else 1,024).
 *
 * A core (vnc) is a queue of the device: 0 to 63, made when a model is first loaded to it.
 *
 * Every call may come from any thread. A model is not to be unloaded while it runs. The child of a
 * fork has to call nrt_init() itself.
 */
#ifndef NRT_H
#define NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NRT__EXPORT
#define NRT__EXPORT __attribute__((visibility("default")))
#endif

#define NRT_MAJOR_VERSION 2
#define NRT_MINOR_VERSION 0

typedef struct nrt_model nrt_model_t;
/* Tensors are not part of this: a model has buffers of its own, and both sets of nrt_execute() are
   NULL. */
typedef struct nrt_tensor_set nrt_tensor_set_t;

typedef enum {
	NRT_FRAMEWORK_TYPE_INVALID = 0,
	NRT_FRAMEWORK_TYPE_NO_FW = 1,
	NRT_FRAMEWORK_TYPE_TENSORFLOW,
	NRT_FRAMEWORK_TYPE_PYTORCH,
	NRT_FRAMEWORK_TYPE_MXNET
} nrt_framework_type_t;

/* Both versions may be NULL. NRT_INVALID: no such framework. Twice is once. Where
   NEURON_RT_INSPECT_ENABLE=1 (or ON_FAIL=1) is in the environment an inspect session begins, and is
   dumped when the program exits (nrt_profile.h). */
NRT__EXPORT NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
				const char *fal_version);
/* Unloads all models. Captures that run may still be stopped and saved. */
NRT__EXPORT void nrt_close(void);

/* vnc: the core, -1 for the first; vnc_count: how many it may use from there, -1 or 1 for one (it
   runs on the first of them). The text is copied. NRT_INVALID: NULL, no such core, or a text that
   is no model or does not compile (stderr has the compiler's words); NRT_UNINITIALIZED, NRT_CLOSED,
   NRT_RESOURCE. */
NRT__EXPORT NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
				nrt_model_t **model);
/* A profile of the model that was not stopped yet may be stopped afterwards. NRT_INVALID: NULL, or
   no loaded model. */
NRT__EXPORT NRT_STATUS nrt_unload(nrt_model_t *model);
/* Runs it once and waits for its end. NRT_INVALID: no loaded model, or a set that is not NULL;
   NRT_HW_ERROR: the device failed. */
NRT__EXPORT NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
				   nrt_tensor_set_t *output_set);

/* "NRT_SUCCESS", …; "NRT_UNKNOWN" for another number. Never NULL. */
NRT__EXPORT const char *nrt_get_status_as_str(NRT_STATUS status);

#ifdef __cplusplus
}
#endif

#endif
