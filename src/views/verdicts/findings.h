/* Findings as a person reads them, in a summary and in a report: the sentence, its place in the
   program's own code, and what to try. */
#ifndef KYMO_VIEWS_VERDICTS_FINDINGS_H
#define KYMO_VIEWS_VERDICTS_FINDINGS_H

#include <stdio.h>

#include "views/term/text.h"
#include "views/verdicts/verdict.h"

#define FINDINGS_MOST 3 /* that are printed; the others are in JSON */

/* Prints at most `most` lines, at least one; returns how many. With few lines, the advice is left
   out first, then the place; long texts lose their last clauses. */
int findings_print(FILE *out, const struct verdict *verdict, int most,
		   const struct text_style *style);
/* Number of lines that findings_print() prints. */
int findings_lines(const struct verdict *verdict, int most, const struct text_style *style);
/* "  where     collate  train.py:31  87 %", or nothing. */
void findings_where(FILE *out, const struct verdict *verdict, const struct text_style *style);

#endif
