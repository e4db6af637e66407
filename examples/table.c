/*
 * A table of your own: declare its columns once, append structs, ask in SQL.
 *
 *	kymo run -- build/examples/table
 *	kymo query "SELECT path, count(*), max(ms) FROM app.requests GROUP BY path"
 */
#include <stdio.h>

#include <kymo/kymo.h>

struct request {
	uint64_t at;
	double ms;
	int32_t status;
	char path[32];
};

static const struct kymo_column columns[] = {
	{ "at_ns", KYMO_TIME, offsetof(struct request, at), 0, NULL },
	{ "ms", KYMO_F64, offsetof(struct request, ms), 0, "ms" },
	{ "status", KYMO_I32, offsetof(struct request, status), 0, NULL },
	{ "path", KYMO_TEXT, offsetof(struct request, path), 32, NULL },
};

int main(void)
{
	struct kymo_error err = { 0 };
	struct kymo_table *requests = kymo_table_create("app.requests", columns, 4,
							sizeof(struct request), &err);

	if (!requests) {
		fprintf(stderr, "table: %s\n", err.text);
		return 1;
	}
	for (int i = 0; i < 1000; i++) {
		struct request request = { .at = kymo_ticks(), .ms = 0.5 * (i % 40) };

		request.status = i % 100 ? 200 : 500;
		snprintf(request.path, sizeof(request.path), i % 3 ? "/items/%d" : "/", i % 7);
		kymo_table_append(requests, &request);
	}
	printf("1000 requests\n");
	return 0;
}
