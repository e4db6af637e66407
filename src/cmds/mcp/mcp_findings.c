/* The tool findings: the run in a line, all its verdicts, and its costliest regions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/mcp/mcp_tools.h"
#include "tables/tables.h"
#include "views/term/format.h"
#include "views/term/text.h"
#include "views/verdicts/facts.h"
#include "views/verdicts/verdict.h"

#define SECONDS 60
#define REGIONS_SHOWN 8

static void print_run(const struct facts *facts)
{
	text_line(stdout, "run: program %s, %s, %s", facts->program, facts->how,
		  format_duration(facts->duration_ns, true).text);
	if (facts->steps.count)
		text_line(stdout, "steps: %" PRIu64 " of %s, median %s, p99 %s", facts->steps.ever,
			  facts->steps.name, format_duration(facts->steps.median_ns, true).text,
			  format_duration(facts->steps.p99_ns, true).text);
	if (facts->memory.peak_bytes > 0)
		text_line(stdout, "memory: peak %s", format_bytes(facts->memory.peak_bytes).text);
	text_line(stdout,
		  "rows: %" PRIu64 " recorded, %" PRIu64 " overwritten, %" PRIu64 " dropped",
		  facts->total.emitted, facts->total.overwritten, facts->total.dropped);
}

static void mcp_findings_where(const struct verdict *verdict)
{
	char line[16] = "", share[64] = "";

	if (!verdict->where_function[0])
		return;
	if (verdict->where_line)
		snprintf(line, sizeof(line), ":%d", verdict->where_line);
	if (verdict->where_share >= 0)
		snprintf(share, sizeof(share), ", %s of it",
			 format_percent(verdict->where_share).text);
	text_line(stdout, "   where: %s (%s%s)%s", verdict->where_function,
		  verdict->where_file[0] ? verdict->where_file : "?", line, share);
}

static void mcp_findings_verdict(const struct verdict *verdict, size_t number)
{
	text_line(stdout, "%zu. %s", number, verdict->sentence);
	if (verdict->evidence[0])
		text_line(stdout, "   evidence: %s", verdict->evidence);
	mcp_findings_where(verdict);
	if (verdict->advice[0])
		text_line(stdout, "   try: %s", verdict->advice);
	if (verdict->query && *verdict->query)
		text_line(stdout, "   numbers: %s", verdict->query);
}

static void mcp_findings_regions(const struct facts *facts)
{
	size_t shown = facts->region_count < REGIONS_SHOWN ? facts->region_count : REGIONS_SHOWN;

	if (shown)
		puts("regions by self time:");
	for (size_t i = 0; i < shown; i++) {
		const struct facts_region *region = &facts->regions[i];

		text_line(stdout, "  %s self, %s total, %" PRIu64 " times: %s",
			  format_duration(region->self_ns, true).text,
			  format_duration(region->total_ns, true).text, region->count,
			  region->name);
	}
	if (facts->region_all > shown)
		fprintf(stderr,
			"%" PRIu64 " regions are left out: FROM trace.regions ORDER BY self_ns "
			"DESC in the tool query\n",
			facts->region_all - shown);
}

static int mcp_findings_print(struct tables *tables, struct kymo_error *err)
{
	struct verdict *verdicts = calloc(VERDICT_MOST, sizeof(*verdicts));
	struct facts facts = { 0 };
	size_t count;
	int rc = verdicts ? facts_gather(tables, &facts, err)
			  : error_set(err, ENOMEM, "out of memory for the findings");

	if (!rc) {
		print_run(&facts);
		count = verdict_all(tables, &facts, true, verdicts, VERDICT_MOST);
		puts("findings, the one with the largest gain first:");
		for (size_t i = 0; i < count; i++)
			mcp_findings_verdict(&verdicts[i], i + 1);
		mcp_findings_regions(&facts);
		facts_fini(&facts);
	}
	free(verdicts);
	return rc;
}

static int mcp_findings_local(void *context)
{
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	const char *target;
	int rc;

	if (!mcp_tools_target(context, "target", &target))
		return CMDS_FAILED;
	rc = mcp_tools_open(target, SECONDS * 1000, &tables, &err);
	if (!rc)
		rc = mcp_findings_print(tables, &err);
	cmds_close(tables);
	return rc ? cmds_fail("findings", &err) : CMDS_OK;
}

int mcp_findings(const struct mcp_arguments *arguments)
{
	return cmds_guarded("findings", mcp_findings_local, (void *)arguments);
}
