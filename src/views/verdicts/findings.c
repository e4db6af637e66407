#include "views/verdicts/findings.h"

#include <string.h>

#include "base/buf.h"
#include "views/term/format.h"

#define SENTENCE_INDENT 2
#define LABEL_INDENT 12
#define FILE_COLUMNS 32 /* a longer name is cut */
#define SENTENCE_LINES 3
#define ADVICE_LINES 2

struct finding_text {
	char sentence[512], advice[512];
	int sentence_lines, advice_lines;
	bool where;
};

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* What of the finding fits. */
static struct finding_text fit_finding(const struct verdict *verdict, int most,
				       const struct text_style *style)
{
	struct finding_text fit = { .where = verdict->where_function[0] && most > 1 };
	int left = most - fit.where;

	memcpy(fit.sentence, verdict->sentence, sizeof(fit.sentence));
	text_shorten(fit.sentence, sizeof(fit.sentence), SENTENCE_INDENT,
		     least(SENTENCE_LINES, left > 2 && verdict->advice[0] ? left - 1 : left),
		     style);
	fit.sentence_lines = text_paragraph_lines(fit.sentence, SENTENCE_INDENT, style);
	left -= fit.sentence_lines;
	if (left < 1 || !verdict->advice[0])
		return fit;
	memcpy(fit.advice, verdict->advice, sizeof(fit.advice));
	text_shorten(fit.advice, sizeof(fit.advice), LABEL_INDENT, least(ADVICE_LINES, left),
		     style);
	fit.advice_lines = text_paragraph_lines(fit.advice, LABEL_INDENT, style);
	return fit;
}

void findings_where(FILE *out, const struct verdict *verdict, const struct text_style *style)
{
	const char *file = facts_place(verdict->where_file);
	struct buf place = { 0 }, line = { 0 };
	size_t room, taken;

	if (!verdict->where_function[0])
		return;
	if (file[0]) {
		buf_text(&place, "  ");
		text_fit(&place, file, FILE_COLUMNS, 0, style);
	}
	if (file[0] && verdict->where_line > 0)
		buf_print(&place, ":%d", verdict->where_line);
	if (verdict->where_share >= 0)
		buf_print(&place, "  %s", format_percent(verdict->where_share).text);
	taken = LABEL_INDENT + text_width(buf_get(&place), place.used);
	room = (size_t)style->columns > taken + 8 ? (size_t)style->columns - taken : 8;
	text_fit(&line, verdict->where_function, room, 0, style);
	buf_text(&line, buf_get(&place));
	fprintf(out, "  where     %s\n", buf_get(&line));
	buf_fini(&place);
	buf_fini(&line);
}

static int count_lines(const struct finding_text *fit)
{
	return fit->sentence_lines + fit->where + fit->advice_lines;
}

int findings_lines(const struct verdict *verdict, int most, const struct text_style *style)
{
	struct finding_text fit = fit_finding(verdict, most, style);

	return count_lines(&fit);
}

int findings_print(FILE *out, const struct verdict *verdict, int most,
		   const struct text_style *style)
{
	struct finding_text fit = fit_finding(verdict, most, style);

	text_paragraph(out, fit.sentence, SENTENCE_INDENT, NULL, true, style);
	if (fit.where)
		findings_where(out, verdict, style);
	if (fit.advice_lines)
		text_paragraph(out, fit.advice, LABEL_INDENT, "  try       ", false, style);
	return count_lines(&fit);
}
