/* Operations of a device that is not there, at times that are known: what device.queues, gaps and
   models make of them. A unit is 1 ms; the clock is the host's. */
#include <kymo/device.h>
#include <stdint.h>
#include <time.h>

static uint64_t unit, zero;
static uint32_t queues[3], model;

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

static void told(uint32_t queue, enum kymo_device_kind kind, uint64_t queued, uint64_t start,
		 uint64_t end, uint32_t flags)
{
	struct kymo_device_op op = { .bytes = sizeof(op), .queue = queues[queue], .kind = kind };

	kymo_device_launch(&op.launch);
	op.model = kind == KYMO_DEVICE_KERNEL || kind == KYMO_DEVICE_EXECUTION ? model : 0;
	op.flags = flags | KYMO_DEVICE_HOST_TICKS;
	op.queued = op.submit = zero + queued * unit;
	op.start = zero + start * unit;
	op.end = zero + end * unit;
	op.moved_bytes = kind == KYMO_DEVICE_COPY ? 1000 : 0;
	kymo_device_op(&op);
}

int main(void)
{
	static const struct kymo_device_adapter adapter = { sizeof(adapter), "told", NULL, NULL,
							    NULL };
	uint32_t device;

	if (kymo_device_enable(NULL))
		return 1;
	sleep_ms(20); /* so that the clock's rate is known */
	unit = (uint64_t)(1e12 / (double)kymo_ticks_ns(1000000));
	zero = kymo_ticks();
	device = kymo_device_add(&adapter, 0, "card");
	queues[0] = kymo_device_queue_add(device, NULL, KYMO_DEVICE_NEXT_CORE);
	queues[1] = kymo_device_queue_add(device, "copies", KYMO_DEVICE_NEXT_CORE);
	queues[2] = kymo_device_queue_add(device, "late", KYMO_DEVICE_NEXT_CORE);
	model = kymo_device_model_add("net");

	told(0, KYMO_DEVICE_KERNEL, 0, 10, 20, 0);
	told(0, KYMO_DEVICE_KERNEL, 1, 20, 30, 0); /* no gap */
	told(0, KYMO_DEVICE_KERNEL, 2, 31, 40, 0); /* 1: launch */
	told(0, KYMO_DEVICE_KERNEL, 3, 43, 50, KYMO_DEVICE_DEPENDS); /* 3: dependency */
	told(0, KYMO_DEVICE_WAIT, 4, 4, 51, 0);
	told(0, KYMO_DEVICE_KERNEL, 53, 55, 60, 0); /* 5: the host had waited until 51 */
	told(0, KYMO_DEVICE_KERNEL, 67, 67, 70, 0); /* 7: nothing was queued */
	told(0, KYMO_DEVICE_WAIT, 67, 68, 71, 0);
	told(0, KYMO_DEVICE_KERNEL, 80, 81, 90, 0); /* 11: it had waited, but then worked for 9 */
	told(0, KYMO_DEVICE_MARKER, 85, 95, 95, 0); /* no work */
	told(0, KYMO_DEVICE_EXECUTION, 0, 10, 50, 0);
	told(0, KYMO_DEVICE_EXECUTION, 50, 55, 90, 0);
	told(1, KYMO_DEVICE_COPY, 0, 15, 25, 0);
	told(1, KYMO_DEVICE_COPY, 1, 92, 110,
	     0); /* 67: launch; nothing of it beside the other queue */
	/* A little late, but what took longest is something else. */
	told(2, KYMO_DEVICE_COPY, 0, 30, 31, 0);
	told(2, KYMO_DEVICE_COPY, 33, 60, 62, KYMO_DEVICE_DEPENDS); /* 29: queued after 2 of them */
	told(2, KYMO_DEVICE_COPY, 63, 72, 73, 0); /* 10: after 1 */
	return 0;
}
