#include "collect/frames/frame_prologue.h"

#include <string.h>

#if defined(__x86_64__)

#define CFA_SP 7
#define CFA_BP 6
#define RETURN 16
#define FRAME_MOST (1 << 20)

/* The DWARF numbers of the machine's registers. */
static const uint8_t dwarf_number[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

struct prologue {
	const unsigned char *code;
	size_t left;
	struct frame_rules *rules;
	int32_t depth; /* of the stack pointer below the CFA */
	bool failed;
};

static bool frame_prologue_begins_with(const struct prologue *prologue, const char *bytes,
				       size_t count)
{
	return prologue->left >= count && !memcmp(prologue->code, bytes, count);
}

static void save_register(struct prologue *prologue, unsigned number, int32_t offset)
{
	struct frame_rule *rule = &prologue->rules->registers[dwarf_number[number & 15]];

	if (rule->kind == FRAME_SAME) /* the first one is the caller's */
		*rule = (struct frame_rule){ .kind = FRAME_AT_OFFSET, .offset = offset };
}

/* push %reg; returns the length of the instruction, 0: another one. */
static size_t read_push(struct prologue *prologue)
{
	const unsigned char *code = prologue->code;
	size_t prefix = prologue->left && code[0] == 0x41;

	if (prologue->left < prefix + 1 || (code[prefix] & 0xf8) != 0x50)
		return 0;
	prologue->depth += 8;
	save_register(prologue, (code[prefix] & 7u) + 8u * (unsigned)prefix, -prologue->depth);
	return prefix + 1;
}

static int32_t signed_byte(unsigned char byte)
{
	return byte < 0x80 ? byte : byte - 0x100;
}

/* sub $imm, %rsp */
static size_t read_sub(struct prologue *prologue)
{
	int32_t amount;
	size_t length;

	if (frame_prologue_begins_with(prologue, "\x48\x83\xec", 3) && prologue->left >= 4) {
		amount = signed_byte(prologue->code[3]);
		length = 4;
	} else if (frame_prologue_begins_with(prologue, "\x48\x81\xec", 3) && prologue->left >= 7) {
		memcpy(&amount, prologue->code + 3, 4);
		length = 7;
	} else {
		return 0;
	}
	if (amount < -FRAME_MOST || amount > FRAME_MOST || prologue->depth + amount < 0 ||
	    prologue->depth + amount > FRAME_MOST)
		prologue->failed = true;
	else
		prologue->depth += amount;
	return length;
}

/* mov %reg, offset(%rsp) */
static size_t read_store(struct prologue *prologue)
{
	const unsigned char *code = prologue->code;
	int32_t offset = 0;
	size_t length = 4;
	unsigned number;

	if (prologue->left < 8 || (code[0] & 0xfb) != 0x48 || code[1] != 0x89 ||
	    (code[2] & 7) != 4 || code[3] != 0x24)
		return 0;
	number = (code[2] >> 3 & 7u) + (code[0] & 4 ? 8u : 0u);
	if (code[2] >> 6 == 1) {
		offset = signed_byte(code[4]);
		length = 5;
	} else if (code[2] >> 6 == 2) {
		memcpy(&offset, code + 4, 4);
		length = 8;
	} else if (code[2] >> 6 == 3) {
		return 0;
	}
	if (offset >= 0 && offset < prologue->depth)
		save_register(prologue, number, offset - prologue->depth);
	return length;
}

/* mov %rsp, %rbp: from here on the frame pointer is exact, whatever happens to the stack. */
static size_t read_frame_pointer(struct prologue *prologue)
{
	if (!frame_prologue_begins_with(prologue, "\x48\x89\xe5", 3) &&
	    !frame_prologue_begins_with(prologue, "\x48\x8b\xec", 3))
		return 0;
	prologue->rules->cfa = (struct frame_rule){ .kind = FRAME_IS_OFFSET,
						    .reg = CFA_BP,
						    .offset = prologue->depth };
	return 3;
}

/* and $-64, %rsp: only the frame pointer remains. */
static size_t read_align(struct prologue *prologue)
{
	size_t length = frame_prologue_begins_with(prologue, "\x48\x83\xe4", 3)	  ? 4
			: frame_prologue_begins_with(prologue, "\x48\x81\xe4", 3) ? 7
										  : 0;

	if (length && prologue->rules->cfa.reg != CFA_BP)
		prologue->failed = true;
	return length;
}

static size_t read_instruction(struct prologue *prologue)
{
	size_t length = frame_prologue_begins_with(prologue, "\xf3\x0f\x1e\xfa", 4)
				? 4
				: 0; /* endbr64 */

	length = length ? length : read_push(prologue);
	length = length ? length : read_sub(prologue);
	length = length ? length : read_store(prologue);
	length = length ? length : read_frame_pointer(prologue);
	return length ? length : read_align(prologue);
}

bool frame_prologue_read(const unsigned char *code, size_t bytes, uint64_t reached,
			 struct frame_rules *out)
{
	struct prologue prologue = { .code = code, .left = bytes, .rules = out, .depth = 8 };
	uint64_t done = 0;
	size_t length;

	memset(out, 0, sizeof(*out));
	out->return_register = RETURN;
	out->registers[RETURN] = (struct frame_rule){ .kind = FRAME_AT_OFFSET, .offset = -8 };
	while (done < reached && !prologue.failed && (length = read_instruction(&prologue))) {
		if (length > prologue.left)
			return false;
		prologue.code += length;
		prologue.left -= length;
		done += length;
	}
	if (out->cfa.reg != CFA_BP)
		out->cfa = (struct frame_rule){ .kind = FRAME_IS_OFFSET,
						.reg = CFA_SP,
						.offset = prologue.depth };
	out->found = !prologue.failed;
	return out->found;
}

/* call rel32, or call through a register or memory: FF with 2 in the middle of the next byte. */
bool frame_prologue_is_call(const unsigned char *code, size_t bytes)
{
	if (bytes >= 5 && code[bytes - 5] == 0xe8)
		return true;
	for (size_t length = 2; length <= FRAME_PROLOGUE_CALL_BYTES && length <= bytes; length++)
		if (code[bytes - length] == 0xff && (code[bytes - length + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

bool frame_prologue_call_distance(const unsigned char *code, size_t bytes, int32_t *out)
{
	if (bytes < 5 || code[bytes - 5] != 0xe8)
		return false;
	memcpy(out, code + bytes - 4, 4);
	return true;
}

#else

bool frame_prologue_read(const unsigned char *code, size_t bytes, uint64_t reached,
			 struct frame_rules *out)
{
	(void)code, (void)bytes, (void)reached, (void)out;
	return false;
}

bool frame_prologue_is_call(const unsigned char *code, size_t bytes)
{
	(void)code, (void)bytes;
	return false;
}

bool frame_prologue_call_distance(const unsigned char *code, size_t bytes, int32_t *out)
{
	(void)code, (void)bytes, (void)out;
	return false;
}

#endif
