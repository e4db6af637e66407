/* The constants that .sql files of this layer name; see tools/embed-sql. */
#ifndef KYMO_VIEWS_SQL_CONSTANTS_H
#define KYMO_VIEWS_SQL_CONSTANTS_H

#include "views/timeline/sampled_zones.h"
#include "base/schema.h"
#include "views/report/report_sections.h"
#include "collect/traceparent.h"
#include "views/top/top_data.h"
#include "views/verdicts/facts.h"

#endif
