/* A table of times and durations that cannot be, and one zone. */
#include <stdint.h>
#include <stdio.h>

#include <kymo/kymo.h>

struct row {
	uint64_t at, took;
};

static const struct kymo_column columns[] = {
	{ "at_ns", KYMO_TIME, offsetof(struct row, at), 0, NULL },
	{ "took_ns", KYMO_DURATION, offsetof(struct row, took), 0, NULL },
};

int main(void)
{
	static const uint64_t extreme[] = { 0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX };
	struct kymo_table *table = kymo_table_create("app.times", columns, 2, sizeof(struct row),
						     NULL);

	KYMO_SCOPE("main");
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 5; k++)
			if (kymo_table_append(table, &(struct row){ extreme[i], extreme[k] }))
				return 1;
	kymo_step_phase(KYMO_PHASE_DATA, UINT64_MAX);
	kymo_step(NULL);
	kymo_step_end(NULL);
	puts("done");
	return 0;
}
