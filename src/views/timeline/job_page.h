/* What an HTML report holds of a job beside its zones: the map of step × rank, the ranks of its
   collectives, and launches of device operations. */
#ifndef KYMO_VIEWS_TIMELINE_JOB_PAGE_H
#define KYMO_VIEWS_TIMELINE_JOB_PAGE_H

#include "base/buf.h"
#include "tables/tables.h"

/* ,"maps":[…],"joined":{…}. 0, or a negative errno and *err. */
int job_page_add(struct tables *tables, struct buf *json, struct kymo_error *err);

#endif
