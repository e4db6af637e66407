#include "collect/perf/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#if defined(__x86_64__)
#include <asm/perf_regs.h>
#elif defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

#define SAMPLE_TYPE \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | \
	 PERF_SAMPLE_STACK_USER)
/* What the kernel adds to other records (sample_id_all): pid, tid, time. */
#define TRAILER_BYTES 16

/* ---- registers ------------------------------------------------------------------------------- */

/* perf's number of each register in DWARF numbering. */
#if defined(__x86_64__)
static const uint8_t perf_number[] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,	PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,	PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};
#elif defined(__aarch64__)
static const uint8_t perf_number[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				       11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				       22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#else
static const uint8_t perf_number[1];
#endif
#define REGISTER_COUNT (sizeof(perf_number) / sizeof(perf_number[0]))

uint64_t perf_record_register_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; REGISTER_COUNT > 1 && i < REGISTER_COUNT; i++)
		mask |= 1ull << perf_number[i];
	return mask;
}

uint64_t perf_record_sample_type(void)
{
	return SAMPLE_TYPE;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct perf_bytes {
	const unsigned char *at;
	size_t left;
	bool failed;
};

static const unsigned char *take_bytes(struct perf_bytes *bytes, size_t count)
{
	const unsigned char *at = bytes->at;

	if (bytes->failed || count > bytes->left) {
		bytes->failed = true;
		return NULL;
	}
	bytes->at += count;
	bytes->left -= count;
	return at;
}

static uint64_t take_u64(struct perf_bytes *bytes)
{
	const unsigned char *at = take_bytes(bytes, 8);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, 8);
	return value;
}

static uint32_t take_u32(struct perf_bytes *bytes)
{
	const unsigned char *at = take_bytes(bytes, 4);
	uint32_t value = 0;

	if (at)
		memcpy(&value, at, 4);
	return value;
}

/* A text in the rest of the record, which must end there. */
static const char *perf_record_take_text(struct perf_bytes *bytes)
{
	const char *text = (const char *)bytes->at;

	if (bytes->failed || !memchr(text, 0, bytes->left)) {
		bytes->failed = true;
		return "";
	}
	return text;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Registers come in the order of perf's numbers. */
static void parse_registers(struct perf_bytes *bytes, struct perf_record *out)
{
	uint64_t mask = perf_record_register_mask(), by_perf[64] = { 0 };

	for (unsigned i = 0; i < 64; i++)
		if (mask >> i & 1)
			by_perf[i] = take_u64(bytes);
	for (size_t i = 0; i < REGISTER_COUNT; i++)
		out->sample.registers[i] = by_perf[perf_number[i]];
	out->sample.pc = out->sample.registers[FRAME_PC];
	out->sample.has_registers = true;
}

static void parse_sample(struct perf_bytes *bytes, struct perf_record *out)
{
	uint64_t abi, size, copied;

	out->pid = (pid_t)take_u32(bytes);
	out->tid = (pid_t)take_u32(bytes);
	out->time_ns = take_u64(bytes);
	out->sample.period_ns = take_u64(bytes);
	abi = take_u64(bytes);
	if (abi == PERF_SAMPLE_REGS_ABI_64)
		parse_registers(bytes, out);
	else if (abi != PERF_SAMPLE_REGS_ABI_NONE)
		bytes->failed = true; /* a 32-bit program: fewer registers, not supported */
	size = take_u64(bytes);
	if (!size)
		return;
	out->sample.stack = take_bytes(bytes, size);
	copied = take_u64(bytes);
	out->sample.stack_is_cut = copied >= size;
	out->sample.stack_bytes = copied < size ? copied : size;
}

/* PERF_RECORD_MISC_MMAP_BUILD_ID is not looked at: our events have no build ids, but the kernel
   sets the bit in our records if another tool's event has them. */
static void parse_mmap(struct perf_bytes *bytes, struct perf_record *out)
{
	uint32_t words[2];

	out->pid = (pid_t)take_u32(bytes);
	out->tid = (pid_t)take_u32(bytes);
	out->mmap.start = take_u64(bytes);
	out->mmap.bytes = take_u64(bytes);
	out->mmap.file_offset = take_u64(bytes);
	words[0] = take_u32(bytes);
	words[1] = take_u32(bytes);
	out->mmap.device = (uint64_t)words[0] << 32 | words[1];
	out->mmap.inode = take_u64(bytes);
	take_u64(bytes); /* the inode's generation */
	take_u64(bytes); /* protection and flags */
	out->mmap.path = perf_record_take_text(bytes);
}

static void parse_fork(struct perf_bytes *bytes, struct perf_record *out)
{
	out->pid = (pid_t)take_u32(bytes);
	out->fork.parent_pid = (pid_t)take_u32(bytes);
	out->tid = (pid_t)take_u32(bytes);
	out->fork.parent_tid = (pid_t)take_u32(bytes);
}

static void parse_name(struct perf_bytes *bytes, struct perf_record *out, bool exec)
{
	out->pid = (pid_t)take_u32(bytes);
	out->tid = (pid_t)take_u32(bytes);
	out->name.name = perf_record_take_text(bytes);
	out->name.exec = exec;
}

static void parse_loss(struct perf_bytes *bytes, struct perf_record *out)
{
	take_u64(bytes); /* the event */
	out->lost = take_u64(bytes);
}

/* The time of a record that is not a sample is at its end. */
static void parse_trailer(const unsigned char *record, size_t bytes, struct perf_record *out)
{
	memcpy(&out->time_ns, record + bytes - 8, 8);
}

static enum perf_record_kind perf_record_kind_of(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_SAMPLE: return PERF_RECORD_OF_SAMPLE;
	case PERF_RECORD_MMAP2: return PERF_RECORD_OF_MMAP;
	case PERF_RECORD_COMM: return PERF_RECORD_OF_NAME;
	case PERF_RECORD_FORK: return PERF_RECORD_OF_FORK;
	case PERF_RECORD_EXIT: return PERF_RECORD_OF_EXIT;
	case PERF_RECORD_LOST: return PERF_RECORD_OF_LOSS;
	default: return PERF_RECORD_OTHER_KIND;
	}
}

static void parse_body(struct perf_bytes *body, uint16_t misc, struct perf_record *out)
{
	switch (out->kind) {
	case PERF_RECORD_OF_SAMPLE:
		out->sample.in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
					PERF_RECORD_MISC_KERNEL;
		parse_sample(body, out);
		break;
	case PERF_RECORD_OF_MMAP: parse_mmap(body, out); break;
	case PERF_RECORD_OF_NAME: parse_name(body, out, misc & PERF_RECORD_MISC_COMM_EXEC); break;
	case PERF_RECORD_OF_FORK:
	case PERF_RECORD_OF_EXIT: parse_fork(body, out); break;
	case PERF_RECORD_OF_LOSS: parse_loss(body, out); break;
	default: break;
	}
}

bool perf_record_parse(const void *record, size_t bytes, struct perf_record *out)
{
	struct perf_event_header head;
	struct perf_bytes body;

	memset(out, 0, sizeof(*out));
	if (bytes < sizeof(head))
		return false;
	memcpy(&head, record, sizeof(head));
	if (head.size != bytes)
		return false;
	out->kind = perf_record_kind_of(head.type);
	body = (struct perf_bytes){ (const unsigned char *)record + sizeof(head),
				    bytes - sizeof(head), false };
	if (out->kind != PERF_RECORD_OF_SAMPLE && out->kind != PERF_RECORD_OTHER_KIND) {
		if (body.left < TRAILER_BYTES)
			return false;
		parse_trailer(record, bytes, out);
		body.left -= TRAILER_BYTES;
	}
	parse_body(&body, head.misc, out);
	return !body.failed;
}
