/* OpenTelemetry's protocol (OTLP): what spans and metrics of a recording share. Field numbers are
   those of opentelemetry-proto. */
#ifndef KYMO_VIEWS_EXPORT_OTLP_H
#define KYMO_VIEWS_EXPORT_OTLP_H

#include "collect/traceparent.h"
#include "views/export/export.h"

struct otlp {
	struct traceparent parent; /* its trace is that of all spans; span 0: none */
	uint64_t root; /* span of the run */
	int64_t epoch_ns, duration_ns; /* of the run, since 1970 */
	bool failed; /* the run was killed or lost */
	char program[256];
	struct buf resource; /* its message, encoded */
	struct buf items; /* spans or metrics, encoded, that are not written yet */
	struct buf item, part, value; /* for one of them */
};

/* Reads the run. 0 or a negative errno. */
int otlp_begin(struct export *export, struct otlp *otlp);
/* Adds an attribute to a message: field `field`. */
void otlp_text(struct otlp *otlp, struct buf *out, uint32_t field, const char *key,
	       const char *text, size_t bytes);
void otlp_number(struct otlp *otlp, struct buf *out, uint32_t field, const char *key,
		 int64_t number);
void otlp_real(struct otlp *otlp, struct buf *out, uint32_t field, const char *key, double number);
/* Writes the items once there are many, or `all`, as one message with the resource: files of
   several are one, since fields of protocol buffers may be repeated. */
int otlp_flush(struct export *export, struct otlp *otlp, bool all);
void otlp_end(struct otlp *otlp);

#endif
