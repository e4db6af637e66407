/* OpenMetrics, the text that Prometheus reads: the families of GET /metrics, labels and samples. */
#ifndef KYMO_SERVE_OPENMETRICS_H
#define KYMO_SERVE_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* X(enumerator, name, type, help), in the order of the document. The first ones come from the rows
   of a recording, those from OPENMETRICS_SQL on from SQL. */
#define OPENMETRICS_FAMILIES(X) \
	X(RUNS, "kymo_runs", "gauge", "Programs that are recorded now.") \
	X(STATE, "kymo_run_state", "gauge", \
	  "1 for the state of the run: running, ended, killed, lost or unknown.") \
	X(STARTED, "kymo_run_start_time_seconds", "gauge", "Start of the run, since 1970.") \
	X(PROCESSES, "kymo_run_processes", "gauge", "Processes of the run that record.") \
	X(AGE, "kymo_last_row_age_seconds", "gauge", "Age of the newest row of the program.") \
	X(OPEN, "kymo_open_zone_age_seconds", "gauge", "The zone that is open for longest.") \
	X(STEPS, "kymo_steps", "counter", "Steps of the main loop that have ended.") \
	X(STEP, "kymo_step_duration_seconds", "histogram", "Durations of steps.") \
	X(PHASE, "kymo_step_phase_seconds", "counter", "Time of steps by phase.") \
	X(CALLS, "kymo_region_zones", "counter", "Zones of a region that have ended.") \
	X(REGION, "kymo_region_seconds", "counter", "Time in a region.") \
	X(SELF, "kymo_region_self_seconds", "counter", "Time in a region, without nested zones.") \
	X(ROWS, "kymo_rows", "counter", "Rows that the program tried to write, by table.") \
	X(LOST, "kymo_rows_lost", "counter", \
	  "Rows that cannot be read: overwritten in a ring, or dropped.") \
	X(MEMORY, "kymo_memory_bytes", "gauge", "Resident memory of a process.") \
	X(CPU, "kymo_cpu_ratio", "gauge", "CPU time of a process, of one core.") \
	X(GPU, "kymo_gpu_utilization_ratio", "gauge", "Share of time with a kernel running.") \
	X(GPU_USED, "kymo_gpu_memory_used_bytes", "gauge", "Memory of a GPU that is in use.") \
	X(GPU_SIZE, "kymo_gpu_memory_size_bytes", "gauge", "Memory of a GPU.") \
	X(GPU_POWER, "kymo_gpu_power_watts", "gauge", "Power of a GPU.") \
	X(BUSY, "kymo_device_busy_ratio", "gauge", \
	  "Share of the time of a rank's device in which something ran, of the rows kept.") \
	X(OVERHEAD, "kymo_overhead_ratio", "gauge", \
	  "Cost of recording, of the wall time of the program; of collector and samplers, of one " \
	  "core.") \
	X(FINDING, "kymo_finding_gain_ratio", "gauge", \
	  "What a finding of the report could gain at most, of the time of the run.") \
	X(TRIGGER, "kymo_trigger_actions", "counter", "Actions of triggers that fired.") \
	X(VALUE, "kymo_counter_value", "gauge", "The last value of a counter of the program.") \
	X(FRESH, "kymo_metrics_age_seconds", "gauge", \
	  "Age of the figures: of rows, and of those that SQL gives.")

enum openmetrics_family {
#define OPENMETRICS_ENUM(id, name, type, help) OPENMETRICS_##id,
	OPENMETRICS_FAMILIES(OPENMETRICS_ENUM)
#undef OPENMETRICS_ENUM
		OPENMETRICS_COUNT,
	OPENMETRICS_SQL = OPENMETRICS_MEMORY
};

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define OPENMETRICS_LABEL_BYTES 200 /* of a value, before escapes; longer ones are cut */

/* By name; OPENMETRICS_COUNT: there is none. */
enum openmetrics_family openmetrics_find(const char *name);
/* # TYPE, # UNIT and # HELP. */
void openmetrics_head(struct buf *out, enum openmetrics_family family);
/* Appends ,key="value"; without the comma to an empty text. */
void openmetrics_label(struct buf *labels, const char *key, const char *value);
/* A sample of a gauge or counter. */
void openmetrics_sample(struct buf *out, enum openmetrics_family family, const char *labels,
			double value);
/* The same with the suffix of the name: "_bucket". */
void openmetrics_part(struct buf *out, enum openmetrics_family family, const char *suffix,
		      const char *labels, double value);
/* Whether a text is labels as openmetrics_label() writes them, one or more. */
bool openmetrics_are_labels(const char *text);

#endif
