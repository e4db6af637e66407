/* Records something of all that an export carries: zones of two threads, steps with phases,
   counters, marks, operations of a device and waits for it. */
#include <kymo/device.h>
#include <kymo/kymo.h>
#include <pthread.h>

#define STEPS 5

static void inner(void)
{
	KYMO_SCOPE("inner");
}

static void work(void)
{
	KYMO_SCOPE("outer");
	for (int i = 0; i < 20; i++)
		inner();
}

static void *helper(void *unused)
{
	work();
	return unused;
}

static void step(struct kymo_fake *fake, int number)
{
	kymo_step("train");
	work();
	kymo_counter("loss", 1.0 / (number + 3));
	kymo_mark("halfway", "text");
	kymo_fake_enqueue(fake, 0, KYMO_DEVICE_WRITE, "copy in", 0, 4096, 1000);
	kymo_fake_execute(fake, 0, kymo_name("model"), 3, 2000);
	kymo_fake_wait(fake, 0);
	kymo_step_phase(KYMO_PHASE_FORWARD, 12345);
}

int main(void)
{
	struct kymo_fake *fake = kymo_fake_open(NULL);
	pthread_t thread;

	if (!fake || pthread_create(&thread, NULL, helper, NULL))
		return 1;
	pthread_join(thread, NULL);
	for (int i = 0; i < STEPS; i++)
		step(fake, i);
	kymo_step_end("train");
	return 0;
}
