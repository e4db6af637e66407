/*
 * Records of a perf ring, parsed into structs. They come from the kernel, but their texts and sizes
 * come from programs: every length is checked against the record.
 */
#ifndef KYMO_COLLECT_PERF_PERF_RECORD_H
#define KYMO_COLLECT_PERF_PERF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/frames/frame_registers.h"

/* The kinds that are used; all others are PERF_RECORD_OTHER_KIND. */
enum perf_record_kind {
	PERF_RECORD_OTHER_KIND,
	PERF_RECORD_OF_SAMPLE,
	PERF_RECORD_OF_MMAP,
	PERF_RECORD_OF_NAME, /* a new name of a thread, or an exec */
	PERF_RECORD_OF_FORK,
	PERF_RECORD_OF_EXIT,
	PERF_RECORD_OF_LOSS,
};

struct perf_record {
	enum perf_record_kind kind;
	pid_t pid, tid;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: none, in a record of losses of an old kernel */
	union {
		struct {
			uint64_t period_ns;
			bool in_kernel; /* the registers are those of the call of the kernel */
			bool has_registers;
			uint64_t pc;
			uint64_t registers[FRAME_REGISTERS];
			uint64_t unknown; /* bits of registers that were not read */
			const unsigned char *stack; /* from the stack pointer upwards */
			size_t stack_bytes;
			bool stack_is_cut; /* the copy is as long as it can be */
		} sample;
		struct {
			uint64_t start, bytes, file_offset;
			uint64_t device, inode;
			const char *path; /* ends with a 0 */
		} mmap;
		struct {
			const char *name; /* ends with a 0 */
			bool exec;
		} name;
		struct {
			pid_t parent_pid, parent_tid;
		} fork;
		uint64_t lost;
	};
};

/* The registers that samples have, for perf_event_attr.sample_regs_user. 0: this machine is not
   supported. */
uint64_t perf_record_register_mask(void);
/* What samples contain, for perf_event_attr.sample_type. */
uint64_t perf_record_sample_type(void);

/* Parses a record of `bytes` bytes, header included. False: it is damaged. Texts and stacks point
   into it. */
bool perf_record_parse(const void *record, size_t bytes, struct perf_record *out);

#endif
