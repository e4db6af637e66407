/* All zones of a recording in a model, with times in ns: for a report. */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_GATHER_H
#define KYMO_VIEWS_TIMELINE_ZONE_GATHER_H

#include "views/timeline/zone_model.h"

struct tables;

/* The stack samples of a program that marked nothing are zones too (sampled_zones.h). Keeps
   ZONE_MODEL_LANES_SHOWN lanes, in order of importance; the zones of others are counted as
   hidden. *out is to be finished in any case. */
int zone_gather(struct tables *tables, struct zone_model *out, struct kymo_error *err);

/* Whether there is a critical path to show. */
bool zone_gather_has_critical(struct tables *tables);

#endif
