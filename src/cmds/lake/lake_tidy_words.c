#include <stdio.h>

#include "cmds/cmds.h"
#include "cmds/lake/lake_words.h"
#include "lake/lake_tidy.h"
#include "views/term/format.h"
#include "views/term/target.h"
#include "views/term/text.h"

static int lake_compact_local(void *context)
{
	const struct lake_request *request = context;
	struct kymo_error err = { 0 };
	struct lake_compacted done;
	char path[KYMO_PATH_BYTES];

	if (target_resolve(request->words[0], path, sizeof(path), &err) ||
	    lake_compact(path, &done, &err))
		return cmds_fail("lake", &err);
	text_line(stderr, "kymo: %s: %s files became %s", path,
		  format_count(done.files_before).text, format_count(done.files_after).text);
	return CMDS_OK;
}

static int lake_align_local(void *context)
{
	const struct lake_request *request = context;
	struct kymo_error err = { 0 };
	struct lake_aligned done;
	char path[KYMO_PATH_BYTES];

	if (target_resolve(request->words[0], path, sizeof(path), &err) ||
	    lake_align(path, &done, &err))
		return cmds_fail("lake", &err);
	text_line(stderr, "kymo: %s: clocks of %s of %s hosts aligned, within %s", path,
		  format_count(done.aligned).text, format_count(done.hosts).text,
		  format_duration((double)done.error_ns, true).text);
	if (done.refused)
		text_line(stderr,
			  "kymo: clocks of %s hosts are not aligned: their calls contradict "
			  "causality (dist.clocks.reason)",
			  format_count(done.refused).text);
	return CMDS_OK;
}

int lake_words_align(struct lake_request *request)
{
	return cmds_guarded("lake", lake_align_local, request);
}

int lake_words_compact(struct lake_request *request)
{
	return cmds_guarded("lake", lake_compact_local, request);
}

int lake_words_rm(struct lake_request *request)
{
	struct kymo_error err = { 0 };
	uint64_t files;

	for (size_t i = 0; i < request->word_count; i++) {
		if (lake_remove(request->words[i], &files, &err))
			return cmds_fail("lake", &err);
		text_line(stderr, "kymo: removed %s, %s files", request->words[i],
			  format_count(files).text);
	}
	return CMDS_OK;
}
