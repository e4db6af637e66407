#include <errno.h>
#include <stdio.h>

#include "cmds/cmds.h"
#include "cmds/lake/lake_words.h"
#include "lake/lake.h"
#include "views/term/format.h"
#include "views/term/target.h"
#include "views/term/text.h"

static bool lake_wants_rank(const void *ranks, int32_t rank)
{
	return rank_set_has(ranks, rank);
}

/* In a child: DuckDB runs here. */
static int lake_add_local(void *context)
{
	const struct lake_request *request = context;
	const struct lake_options options = {
		.lake = request->words[request->word_count - 1],
		.run = request->run,
		.tier = request->tier,
		.wants_rank = request->ranks.count ? lake_wants_rank : NULL,
		.context = &request->ranks,
	};
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	for (size_t i = 0; i + 1 < request->word_count; i++) {
		struct lake_result result = { 0 };

		if (target_resolve(request->words[i], path, sizeof(path), &err) ||
		    lake_add(path, &options, &result, &err))
			return cmds_fail("lake", &err);
		text_line(stderr, "kymo: %s: %s rows in %s files, %s", result.job,
			  format_count(result.rows).text, format_count(result.files).text,
			  format_bytes((double)result.bytes).text);
	}
	return CMDS_OK;
}

int lake_words_add(struct lake_request *request)
{
	return cmds_guarded("lake", lake_add_local, request);
}
