/* Internals of libkymo: devices. device.c has the registry and the rows, device_clock.c the
   clocks. */
#ifndef KYMO_RECORD_DEVICE_DEVICE_H
#define KYMO_RECORD_DEVICE_DEVICE_H

#include <kymo/device.h>

#include "record/record.h"

#define KYMO__DEVICE_PAIRS 32
#define KYMO__DEVICE_NAME_BYTES 120

/* Host ticks that are within error_ns of a device time. */
struct kymo__device_pair {
	uint64_t ticks, device_ns, error_ns;
};

/* How the device's clock relates to the host's; copied as a whole (kymo__device_align). */
struct kymo__device_rate {
	struct kymo__device_pair last;
	double ticks_per_ns; /* host ticks per device ns */
	double unsure; /* its relative error */
};

struct kymo__device_clock {
	uint32_t syncing; /* 1 while a thread reads both clocks; atomic */
	uint32_t version; /* odd while rate and pairs are written; atomic */
	uint32_t count; /* pairs ever, since the last step of the clock */
	uint32_t reserved;
	struct kymo__device_rate rate;
	struct kymo__device_pair pairs[KYMO__DEVICE_PAIRS]; /* a ring */
};

struct kymo__device {
	uint32_t state; /* 0 free, 1 being filled, 2 ready; atomic */
	uint32_t name_id; /* 0 until its first row; atomic */
	const struct kymo_device_adapter *adapter;
	uint32_t local;
	int64_t live_bytes; /* atomic */
	struct kymo__device_clock clock;
	char name[KYMO__DEVICE_NAME_BYTES];
};

/* NULL: no such id. */
struct kymo__device *kymo__device_get(uint32_t device);
/* The id of its name, interned at first use; 0 before names exist. */
uint32_t kymo__device_name_id(struct kymo__device *device);

/* device_clock.c: kymo_device_align(), but reads both clocks first if the last reading is old. */
int kymo__device_when(struct kymo__device *device, uint64_t device_ns, uint64_t *out_ticks,
		      uint64_t *out_error_ns);
/* Reads both clocks if the last reading is too old. */
void kymo__device_sync_if_due(struct kymo__device *device);

#endif
