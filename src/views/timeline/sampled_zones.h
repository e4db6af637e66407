/*
 * The stack samples of a program that marked nothing itself, as zones of the source 'sample'; the
 * part sampled_zones of the SQL says how they are made. A timeline of such a program would be empty
 * without them.
 */
#ifndef KYMO_VIEWS_TIMELINE_SAMPLED_ZONES_H
#define KYMO_VIEWS_TIMELINE_SAMPLED_ZONES_H

#include <stdbool.h>
#include <stdint.h>

#define SAMPLED_ZONES_SAMPLES 20000 /* of a thread; more are thinned evenly */
#define SAMPLED_ZONES_DEPTH 200 /* frames of a stack; inner ones are left out */
#define SAMPLED_ZONES_TID 1073741824 /* added to the tid of a thread; above every tid of Linux */

struct tables;

/* Whether the program marked nothing, while its stacks were sampled. */
bool sampled_zones_wanted(struct tables *tables);
const char *sampled_zones_sql(void); /* their query, with the columns of zone_rows.h */
uint64_t sampled_zones_thinned(struct tables *tables); /* samples that are left out */

#endif
