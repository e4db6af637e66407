/* Something to look at while it runs: steps of two nested zones and a name that a page must not
   parse, a counter and marks, a second thread; until standard input ends, at most for two minutes.
   "stay" in it opens a zone that stays open. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

static atomic_bool ended;

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

static void *load(void *unused)
{
	kymo_thread_name("loader");
	while (!ended) {
		KYMO_SCOPE("fetch");
		pause_ms(3);
	}
	return unused;
}

static void one_step(int i)
{
	kymo_step("train");
	{
		KYMO_SCOPE("forward");
		pause_ms(2);
		{
			KYMO_SCOPE("<img src=x onerror=\"window.hacked=1\">");
			pause_ms(1);
		}
	}
	{
		KYMO_SCOPE("backward");
		pause_ms(2);
	}
	kymo_counter("loss", 3.0 / (1.0 + i / 50.0));
	if (i % 100 == 99)
		kymo_mark("epoch", i % 200 == 99 ? "odd" : "even");
}

int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	pthread_t loader;
	char text[64];

	if (pthread_create(&loader, NULL, load, NULL))
		return 1;
	kymo_thread_name("main");
	for (int i = 0; i < 20000; i++) {
		one_step(i);
		if (poll(&input, 1, 0) <= 0)
			continue;
		if (read(0, text, sizeof(text)) <= 0)
			break;
		KYMO_SCOPE("stuck in a zone");
		pause_ms(120000);
	}
	kymo_step_end("train");
	ended = true;
	pthread_join(loader, NULL);
	return 0;
}
