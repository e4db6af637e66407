/* Parts that summary and report share. Each writes whole lines. */
#ifndef KYMO_VIEWS_REPORT_SUMMARY_LINES_H
#define KYMO_VIEWS_REPORT_SUMMARY_LINES_H

#include <stdio.h>

#include "views/verdicts/facts.h"
#include "views/term/text.h"

/* "  20,787 steps   median 9.68 ms   p99 33.3 ms   75.8 steps/s"; nothing without steps. */
void summary_lines_steps(FILE *out, const struct facts *facts, const struct text_style *style);
/* "  phases: data 20 %, forward 26 %, …", if phases are recorded. */
bool summary_lines_has_phases(const struct facts *facts);
void summary_lines_phases(FILE *out, const struct facts *facts);
/* "  step time  ▁▁▂▁   9.2 to 47.8 ms"; nothing with too few steps. Returns whether it printed. */
bool summary_lines_sparkline(FILE *out, const struct facts *facts, const struct text_style *style);
/* A header and `rows` of the costliest regions. */
void summary_lines_regions(FILE *out, const struct facts *facts, size_t rows,
			   const struct text_style *style);
/* The same of functions of the program's own code, from stack samples. */
void summary_lines_functions(FILE *out, const struct facts *facts, size_t rows,
			     const struct text_style *style);
/* " garbage collection: 4.99 s in 1,100 collections, 50 % of the run"; nothing if it is less
   than a hundredth. */
bool summary_lines_has_collections(const struct facts *facts);
void summary_lines_collections(FILE *out, const struct facts *facts,
			       const struct text_style *style);
/* "  losses: 12,419 of 10,012,640 rows overwritten, 0 dropped; overhead 0.31 %" */
void summary_lines_losses(FILE *out, const struct facts *facts, const struct text_style *style);
/* The same in one line, for a summary: "  losses: none of 642 rows; overhead 0 %; kymo used 1.1 %
   of a core" */
void summary_lines_cost(FILE *out, const struct facts *facts, const struct text_style *style);
/* "  memory: peak 3.01 GB at 4:12, 2.97 GB at the end"; nothing if it was not recorded. */
void summary_lines_memory(FILE *out, const struct facts *facts, const struct text_style *style);
/* "  recorded: 10,000,220 zones, 20,787 steps, 12 marks, app.requests 220" */
void summary_lines_recorded(FILE *out, const struct facts *facts, const struct text_style *style);

#endif
