/* What tests ask of a recording that is made by hand. */
#ifndef KYMO_TESTS_HANDMADE_CLAIMS_H
#define KYMO_TESTS_HANDMADE_CLAIMS_H

#include "handmade.h"

#include <cmocka.h>

static inline struct recording *opened(struct handmade *made)
{
	struct kymo_error err = { 0 };
	struct recording *recording;

	if (handmade_open_memory(made, &recording, &err))
		fail_msg("%s", err.text);
	return recording;
}

static inline void assert_problem(const struct recording *recording, const char *part)
{
	for (size_t i = 0; i < recording->problem_count; i++)
		if (strstr(recording->problems[i], part))
			return;
	fail_msg("no problem says '%s' (%zu others, first: %s)", part, recording->problem_count,
		 recording->problem_count ? recording->problems[0] : "-");
}

static inline void assert_rows_are(const struct store_stream *stream, uint64_t first, uint64_t end)
{
	uint64_t number = first;

	for (size_t c = 0; c < stream->chunk_count; c++) {
		assert_int_equal(stream->chunks[c].first_row, number);
		for (uint64_t i = 0; i < stream->chunks[c].rows; i++, number++) {
			struct kymo_zone_row row;

			assert_int_equal(store_read_rows(stream, &stream->chunks[c], i, 1, &row),
					 1);
			assert_true(handmade_row_is(&row, number));
		}
	}
	assert_int_equal(number, end);
}

#endif
