/* A program with a profiler of its own that uses CUPTI as torch.profiler does: it subscribes, takes
   the buffers, enables kinds, disables them and flushes. Linked with both libraries of the
   stand-in. */
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kymo/kymo.h>

#include "standin.h"

static const struct kernel before = { "before", 100000, 0 }, during = { "during", 100000, 0 },
			   after = { "after", 100000, 0 };
static unsigned seen_kernels, seen_others, seen_calls;
static uint64_t realtime_off_ns; /* how far times are from CLOCK_REALTIME, at most */

static uint64_t realtime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	(void)user, (void)domain, (void)id, (void)data;
	seen_calls++;
}

static void on_request(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*bytes = 1 << 20;
	*buffer = aligned_alloc(8, *bytes);
	*records = 0;
}

static void on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
			size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context, (void)stream, (void)bytes;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		uint64_t now = realtime();
		const KERNEL_T *kernel = (const void *)record;

		if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
		    strcmp(kernel->name, "during") != 0) {
			seen_others++;
			continue;
		}
		seen_kernels++;
		if (kernel->end > now && kernel->end - now > realtime_off_ns)
			realtime_off_ns = kernel->end - now;
		if (now > kernel->end + 10000000000u)
			realtime_off_ns = now - kernel->end;
	}
	free(buffer);
}

static void launch(const struct kernel *kernel, int count)
{
	KYMO_SCOPE("loop");

	for (int i = 0; i < count; i++)
		cudaLaunchKernel(kernel, 7);
	cudaDeviceSynchronize();
}

static void profile(void)
{
	cuptiActivityRegisterCallbacks(on_request, on_complete);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch(&during, 20);
	cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch(&before, 3); /* nobody asks for these */
	cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

int main(int argc, char **argv)
{
	CUpti_SubscriberHandle subscriber = NULL;

	launch(&before, 10);
	if (cuptiSubscribe(&subscriber, on_call, NULL) != CUPTI_SUCCESS)
		puts("not subscribed");
	else
		cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
	profile();
	launch(&after, 30);
	profile();
	if (argc > 1 && !strcmp(argv[1], "finalize")) {
		cuptiUnsubscribe(subscriber);
		cuptiFinalize();
	}
	launch(&after, 5);
	printf("%u kernels, %u others, calls %s, clock %s\n", seen_kernels, seen_others,
	       seen_calls ? "seen" : "not seen", realtime_off_ns < 1000000000u ? "right" : "wrong");
	return 0;
}
