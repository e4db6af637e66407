/* A device that stands still for a reason, or does not: idle, unused, sync, tiny, busy, bound.
   Operations are told of, over 0.6 s of the clock. */
#include <kymo/device.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static uint64_t us, zero;
static uint32_t queue;

static void told(enum kymo_device_kind kind, uint64_t queued, uint64_t start, uint64_t end)
{
	struct kymo_device_op op = { .bytes = sizeof(op), .queue = queue, .kind = kind };

	kymo_device_launch(&op.launch);
	op.flags = KYMO_DEVICE_HOST_TICKS;
	op.name = kind == KYMO_DEVICE_KERNEL ? kymo_name("matmul") : 0;
	op.queued = op.submit = zero + queued * us;
	op.start = zero + start * us;
	op.end = zero + end * us;
	kymo_device_op(&op);
}

int main(int argc, char **argv)
{
	static const struct kymo_device_adapter adapter = { sizeof(adapter), "told", NULL, NULL,
							    NULL };
	const char *how = argc > 1 ? argv[1] : "busy";
	const uint64_t each = !strcmp(how, "tiny") ? 500 : 30000, turns = 600000 / each;

	if (kymo_device_enable(NULL))
		return 1;
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	us = (uint64_t)(1e9 / (double)kymo_ticks_ns(1000000));
	zero = kymo_ticks();
	queue = kymo_device_queue_add(kymo_device_add(&adapter, 0, "card"), NULL, 0);
	for (uint64_t i = 0; i < turns; i++) {
		uint64_t at = i * each;

		if (!strcmp(how, "idle")) /* queued 24 ms after the one before was done */
			told(KYMO_DEVICE_KERNEL, at + 24000, at + 24001, at + each);
		if (!strcmp(how, "unused")) /* 9 µs of 30 ms */
			told(KYMO_DEVICE_KERNEL, at + 29990, at + 29991, at + each);
		if (!strcmp(how,
			    /* done after 15 ms; 12 until the host has noticed, 3 to begin the
			       next */
			    "sync")) {
			told(KYMO_DEVICE_KERNEL, at, at + 3000, at + 18000);
			told(KYMO_DEVICE_WAIT, at + 1, at + 1, at + each);
		}
		if (!strcmp(how, "tiny")) /* 10 of 500 µs */
			told(KYMO_DEVICE_KERNEL, 0, at, at + 10);
		if (!strcmp(how, "busy") || !strcmp(how, "bound"))
			told(KYMO_DEVICE_KERNEL, 0, at, at + each);
		if (!strcmp(how, "bound")) /* the next is queued already: it never stands still */
			told(KYMO_DEVICE_WAIT, at + 1, at + 1, at + each);
	}
	nanosleep(&(struct timespec){ 0, 580000000 }, NULL);
	return 0;
}
