/*
 * Records fixed things through the public API, so that tests of the command line know every row but
 * its times.
 *
 *	cli_fixture plain	40 steps with phases, 120 zones, 3 marks, 4 counter values,
 *				3 rows of app.requests
 *	cli_fixture hostile	names that try to get out of their cell
 *	cli_fixture open	waits inside two zones until stdin ends
 *	cli_fixture killed	dies by SIGKILL inside two zones
 *	cli_fixture empty	records nothing but its existence
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

struct request {
	uint64_t at;
	double ms;
	int64_t bytes;
	char path[16];
};

static const struct kymo_column columns[] = {
	{ "at_ns", KYMO_TIME, offsetof(struct request, at), 0, NULL },
	{ "ms", KYMO_F64, offsetof(struct request, ms), 0, "ms" },
	{ "bytes", KYMO_I64, offsetof(struct request, bytes), 0, "bytes" },
	{ "path", KYMO_TEXT, offsetof(struct request, path), 16, NULL },
};

static void add_requests(void)
{
	static const struct request rows[] = {
		{ 0, 1.5, -1, "/" },
		{ 0, 0.25, 9007199254740993, "/a,b\"c" },
		{ 0, 1e300, INT64_MIN, "" },
	};
	struct kymo_table *table = kymo_table_create("app.requests", columns, 4,
						     sizeof(struct request), NULL);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct request row = rows[i];

		row.at = kymo_ticks();
		kymo_table_append(table, &row);
	}
}

static void spend_us(long us)
{
	struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&pause, NULL);
}

static void one_step(int i)
{
	KYMO_SCOPE("train_step");

	kymo_step("step");
	{
		uint64_t began = kymo_ticks();
		KYMO_SCOPE("data.next");

		spend_us(i == 20 ? 20000 : 500);
		kymo_step_phase(KYMO_PHASE_DATA, kymo_ticks() - began);
	}
	{
		uint64_t began = kymo_ticks();
		KYMO_SCOPE("forward");

		spend_us(200);
		kymo_step_phase(KYMO_PHASE_FORWARD, kymo_ticks() - began);
	}
}

static void plain(void)
{
	kymo_thread_name("main");
	for (int i = 0; i < 40; i++)
		one_step(i);
	kymo_step_end("step");
	kymo_mark("begin", NULL);
	kymo_mark("loaded", "12 files");
	kymo_mark("a long text",
		  "a text of more than thirty-two bytes, so that it is cut into parts");
	for (int i = 0; i < 4; i++)
		kymo_counter("queue", i / 2.0);
	add_requests();
}

static void hostile(void)
{
	static const char *const names[] = {
		"</script><script>alert(1)",
		"=cmd()",
		"+1",
		"-1",
		"@x",
		"\ttab",
		"\rreturn",
		"bad\xff\xfeutf8",
		"escape\033[31mred",
		"bell\a",
		"new\nline",
		"quote\"comma,",
		"\xc2\x9b"
		"31m",
		"right\xe2\x80\xaeleft",
		"NULL",
		"",
		"a_name_that_is_much_longer_than_any_column_of_a_terminal_and_so_has_to_be_cut_in_"
		"the_middle_of_it",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct kymo_zone zone = kymo_zone_begin_id(kymo_name(names[i]));

		/* What ends within a tick of the clock took no time, and has no line in a folded
		   file. */
		spend_us(1);
		kymo_zone_end(&zone);
		kymo_mark(names[i], names[i]);
	}
}

static void inside(void)
{
	KYMO_SCOPE("outer");
	KYMO_SCOPE("inner");

	printf("%d\n", (int)getpid());
	fflush(stdout);
	(void)getchar();
}

static void killed(void)
{
	KYMO_SCOPE("outer");
	KYMO_SCOPE("inner");

	raise(SIGKILL);
}

static void empty(void)
{
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		void (*record)(void);
	} words[] = { { "plain", plain },
		      { "hostile", hostile },
		      { "open", inside },
		      { "killed", killed },
		      { "empty", empty } };

	for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(argv[1], words[i].word) == 0) {
			words[i].record();
			return EXIT_SUCCESS;
		}
	}
	fprintf(stderr, "usage: cli_fixture plain|hostile|open|killed|empty\n");
	return 2;
}
