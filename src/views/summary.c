#include "views/summary.h"

#include <string.h>

#include "store/store.h"
#include "tables/tables.h"
#include "views/facts.h"
#include "views/parts.h"
#include "views/text.h"
#include "views/verdict.h"

#define LINES_MOST 13
#define REGIONS_MOST 5

static struct text_style style_of(const struct summary_options *options, FILE *out)
{
	struct text_style style = text_style_of(out);

	style.colour = options && options->colour;
	if (options && options->columns > 0)
		style.columns = options->columns;
	return style;
}

static void join(const struct verdict *verdict, char *out, size_t out_bytes)
{
	if (verdict->advice[0])
		snprintf(out, out_bytes, "%s Try: %s.", verdict->sentence, verdict->advice);
	else
		snprintf(out, out_bytes, "%s", verdict->sentence);
}

/* Lines that are always there; the regions get what is left. */
static int lines_beside_regions(const char *sentence, const char *note, const struct facts *facts,
				const struct text_style *style)
{
	int lines = text_paragraph_lines(sentence, 2, style) + 1; /* and a blank one */

	lines += note ? text_paragraph_lines(note, 2, style) : 0;
	lines += facts->steps.ever > 0;
	lines += facts->steps.count >= FACTS_SPARK_LEAST;
	lines += facts->memory.peak_bytes > 0;
	return lines + 4; /* recorded, losses, more, the header of the regions */
}

static void print(const struct facts *facts, const struct verdict *verdict, const char *note,
		  FILE *out, const struct text_style *style)
{
	char sentence[1200];
	int room;

	join(verdict, sentence, sizeof(sentence));
	room = LINES_MOST - lines_beside_regions(sentence, note, facts, style);
	room = room < 1 ? 1 : room > REGIONS_MOST ? REGIONS_MOST : room;
	text_paragraph(out, sentence, 2, NULL, true, style);
	fputc('\n', out);
	parts_steps(out, facts, style);
	if (facts->steps.count)
		parts_sparkline(out, facts, style);
	parts_regions(out, facts, (size_t)room, style);
	parts_memory(out, facts, style);
	parts_recorded(out, facts, style);
	parts_losses(out, facts, style);
	if (note)
		text_paragraph(out, note, 2, NULL, false, style);
	fprintf(out, "  more: kymo report | kymo query 'FROM trace.regions'\n");
}

/* Nothing inside the program was recorded: nothing for SQL to find, so its start-up is saved. */
static bool is_empty(const struct recording *recording)
{
	for (size_t i = 0; i < recording->stream_count; i++)
		if (strncmp(recording->streams[i].table, "host.", 5) != 0 &&
		    recording->streams[i].emitted)
			return false;
	return true;
}

static int print_from_store(const struct recording *recording, const char *note, FILE *out,
			    const struct text_style *style, struct kymo_error *err)
{
	struct verdict verdict;
	struct facts facts;
	int rc = facts_from_store(recording, &facts, err);

	if (!rc) {
		verdict_find(NULL, &facts, style->utf8, &verdict);
		print(&facts, &verdict, note, out, style);
	}
	facts_fini(&facts);
	return rc;
}

static int print_from_tables(const char *path, FILE *out, const struct text_style *style,
			     struct kymo_error *err)
{
	struct tables_options options = { 0 };
	struct tables *tables = NULL;
	struct verdict verdict;
	struct facts facts = { 0 };
	int rc = tables_open(path, &options, &tables, err);

	if (!rc)
		rc = facts_gather(tables, &facts, err);
	if (!rc) {
		verdict_find(tables, &facts, style->utf8, &verdict);
		print(&facts, &verdict, NULL, out, style);
	}
	facts_fini(&facts);
	tables_close(tables);
	return rc;
}

int summary_print(const char *path, const struct summary_options *options, FILE *out,
		  struct kymo_error *err)
{
	struct text_style style = style_of(options, out);
	struct kymo_error why = { 0 };
	struct recording *recording = NULL;
	int rc = store_open(path, &recording, err);

	if (rc)
		return rc;
	if (is_empty(recording))
		rc = print_from_store(recording, NULL, out, &style, err);
	else if (print_from_tables(path, out, &style, &why))
		rc = print_from_store(recording, why.text, out, &style, err);
	store_close(recording);
	return rc;
}
