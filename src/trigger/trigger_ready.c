#include "trigger/trigger.h"

#include "trigger_sql.h"

const struct trigger_ready trigger_ready[] = {
	{ "slow_step", "a step takes three times the median of the steps before it",
	  sql_ready_slow_step },
	{ "stall", "no step has ended for ten times the median step, and at least 10 s",
	  sql_ready_stall },
	{ "memory_growth", "resident memory has grown by a fifth and 256 MB in ten minutes",
	  sql_ready_memory_growth },
	{ "loss_nan", "a counter or watched variable whose name contains loss is NaN or infinite",
	  sql_ready_loss_nan },
	{ "device_idle", "a device that was used has been idle for 10 s", sql_ready_device_idle },
	{ "late_rank", "a rank is late at most collectives of the last minute",
	  sql_ready_late_rank },
	{ NULL, NULL, NULL },
};
