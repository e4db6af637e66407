/* The words of `kymo lake`: each is a function that returns an exit status. */
#ifndef KYMO_CMDS_LAKE_WORDS_H
#define KYMO_CMDS_LAKE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "views/timeline/rank_set.h"

struct lake_request {
	char **words; /* after the first */
	size_t word_count;
	const char *run;
	int tier;
	bool json;
	struct rank_set ranks;
};

int lake_words_add(struct lake_request *request);
int lake_words_follow(struct lake_request *request);
int lake_words_ls(struct lake_request *request);
int lake_words_check(struct lake_request *request);
int lake_words_align(struct lake_request *request);
int lake_words_compact(struct lake_request *request);
int lake_words_rm(struct lake_request *request);
int lake_words_spark_sql(struct lake_request *request);

#endif
