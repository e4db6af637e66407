/* What libkymo_cupti adds to a launch and to a record: its callback on entry and exit of
   cudaLaunchKernel(), and its decoder on full buffers of kernel records. CUPTI itself is replaced
   by functions that do nothing, so its own cost is not in the figures. */
#include <stdio.h>
#include <string.h>

#include "record/cupti/cupti.h"

#define LAUNCHES 20000u
#define RECORD_BYTES 208u /* as in CUPTI 12.9 */
#define REPEATS 15

static _Alignas(8) uint8_t buffer[CUPTI_BUFFER_BYTES];
static const size_t filled = CUPTI_BUFFER_BYTES / RECORD_BYTES * RECORD_BYTES;

static int callback_name(uint32_t domain, uint32_t id, const char **out)
{
	*out = domain == CUPTI_DOMAIN_RUNTIME && id == 1 ? "cudaLaunchKernel_v7000" : NULL;
	return !*out;
}

static int enable_callback(uint32_t enable, cupti_handle handle, uint32_t domain, uint32_t id)
{
	(void)enable, (void)handle, (void)domain, (void)id;
	return 0;
}

static int flush(uint32_t flag)
{
	(void)flag;
	return 0;
}

static int now(uint64_t *out)
{
	*out = kymo_ticks_ns(kymo_ticks());
	return 0;
}

static int timestamp(cupti_clock *clock)
{
	(void)clock;
	return 0;
}

static int next_record(uint8_t *from, size_t valid, uint8_t **record)
{
	uint8_t *next = *record ? *record + RECORD_BYTES : from;

	*record = next;
	return next >= from + valid;
}

static double ns_since(uint64_t begun, uint64_t count)
{
	return (double)kymo_ticks_ns((kymo_ticks() - begun) * 1024) / 1024 / (double)count;
}

static double launches_ns(uint32_t *correlation)
{
	struct cupti_call_data data = { .function = "cudaLaunchKernel", .symbol = "kernel" };
	int result = 0;
	uint64_t begun = kymo_ticks();

	data.result = &result;
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		data.correlation = ++*correlation;
		data.site = 0;
		cupti_on_call(NULL, CUPTI_DOMAIN_RUNTIME, 1, &data);
		data.site = 1;
		cupti_on_call(NULL, CUPTI_DOMAIN_RUNTIME, 1, &data);
	}
	return ns_since(begun, LAUNCHES);
}

static double records_ns(uint32_t correlation)
{
	uint64_t begun;

	for (size_t at = 0; at < filled; at += RECORD_BYTES) {
		const struct cupti_kernel record = { .kind = CUPTI_CONCURRENT_KERNEL,
						     .start = 1900000000000000000u,
						     .end = 1900000000000001000u,
						     .context = 1,
						     .stream = 7,
						     .name = "kernel",
						     .correlation = correlation-- };

		memcpy(buffer + at, &record, sizeof(record));
	}
	begun = kymo_ticks();
	cupti_decode(buffer, filled);
	return ns_since(begun, filled / RECORD_BYTES);
}

static double least(double a, double b)
{
	return a && a < b ? a : b;
}

int main(void)
{
	double launch = 0, record = 0;
	uint32_t correlation = 0;

	cupti_api.cuptiGetCallbackName = callback_name;
	cupti_api.cuptiEnableCallback = enable_callback;
	cupti_api.cuptiActivityFlushAll = flush;
	cupti_api.cuptiGetTimestamp = now;
	cupti_api.cuptiActivityGetNextRecord = next_record;
	cupti_api.cuptiActivityRegisterTimestampCallback = timestamp;
	if (kymo_device_enable(NULL))
		return 1;
	cupti_calls_enable(NULL);
	cupti_clock_begin();
	cupti_poll_begin();
	cupti_state = CUPTI_ARMED;
	for (int i = 0; i < REPEATS; i++) {
		launch = least(launch, launches_ns(&correlation));
		record = least(record, records_ns(correlation));
	}
	printf("{\"key\": \"cupti.launch\", \"value\": %.1f}\n", launch);
	printf("{\"key\": \"cupti.record\", \"value\": %.1f}\n", record);
	return 0;
}
