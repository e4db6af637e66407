#include "collect/frames/frame_expression.h"

#include <dwarf.h>

#include "collect/frames/dwarf_bytes.h"

#define STACK_MOST 32
#define STEPS_MOST 1000 /* there may be loops */

struct expression {
	struct dwarf_bytes bytes;
	const unsigned char *start;
	const struct frame_state *state;
	const struct frame_memory *memory;
	uint64_t stack[STACK_MOST];
	size_t depth;
	bool failed;
};

static void push(struct expression *run, uint64_t value)
{
	if (run->depth == STACK_MOST)
		run->failed = true;
	else
		run->stack[run->depth++] = value;
}

static uint64_t pop(struct expression *run)
{
	if (!run->depth) {
		run->failed = true;
		return 0;
	}
	return run->stack[--run->depth];
}

static void push_register(struct expression *run, uint64_t number, int64_t offset)
{
	if (number >= FRAME_REGISTERS || run->state->unknown >> number & 1)
		run->failed = true;
	else
		push(run, run->state->registers[number] + (uint64_t)offset);
}

static void dereference(struct expression *run)
{
	uint64_t value = 0;

	if (!frame_memory_read(run->memory, pop(run), &value))
		run->failed = true;
	push(run, value);
}

static void branch(struct expression *run, bool taken)
{
	int64_t distance = dwarf_signed(&run->bytes, 2);
	int64_t at = run->bytes.at - run->start;

	if (!taken || run->bytes.failed)
		return;
	if (distance < -at || distance > run->bytes.end - run->bytes.at)
		run->failed = true;
	else
		run->bytes.at += distance;
}

/* Numbers in the code. False: another operation. */
static bool do_constant(struct expression *run, unsigned op)
{
	struct dwarf_bytes *bytes = &run->bytes;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		push(run, op - DW_OP_lit0);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_register(run, op - DW_OP_breg0, dwarf_sleb(bytes));
	else if (op == DW_OP_bregx) {
		uint64_t number = dwarf_uleb(bytes);

		push_register(run, number, dwarf_sleb(bytes));
	} else if (op == DW_OP_addr || op == DW_OP_const8u || op == DW_OP_const8s)
		push(run, dwarf_fixed(bytes, 8));
	else if (op == DW_OP_const1u || op == DW_OP_const2u || op == DW_OP_const4u)
		push(run, dwarf_fixed(bytes, op == DW_OP_const1u   ? 1
					     : op == DW_OP_const2u ? 2
								   : 4));
	else if (op == DW_OP_const1s || op == DW_OP_const2s || op == DW_OP_const4s)
		push(run, (uint64_t)dwarf_signed(bytes, op == DW_OP_const1s   ? 1
							: op == DW_OP_const2s ? 2
									      : 4));
	else if (op == DW_OP_constu)
		push(run, dwarf_uleb(bytes));
	else if (op == DW_OP_consts)
		push(run, (uint64_t)dwarf_sleb(bytes));
	else
		return false;
	return true;
}

static bool do_unary(struct expression *run, unsigned op)
{
	uint64_t value;

	switch (op) {
	case DW_OP_deref: dereference(run); return true;
	case DW_OP_neg: push(run, 0 - pop(run)); return true;
	case DW_OP_not: push(run, ~pop(run)); return true;
	case DW_OP_plus_uconst: push(run, pop(run) + dwarf_uleb(&run->bytes)); return true;
	case DW_OP_drop: pop(run); return true;
	case DW_OP_dup:
		value = pop(run);
		push(run, value);
		push(run, value);
		return true;
	case DW_OP_skip: branch(run, true); return true;
	case DW_OP_bra: branch(run, pop(run) != 0); return true;
	case DW_OP_nop: return true;
	default: return false;
	}
}

static uint64_t shift_signed(uint64_t a, uint64_t b)
{
	return (uint64_t)((int64_t)a >> (b < 63 ? b : 63));
}

static void do_binary(struct expression *run, unsigned op)
{
	uint64_t b = pop(run), a = pop(run);

	switch (op) {
	case DW_OP_plus: push(run, a + b); break;
	case DW_OP_minus: push(run, a - b); break;
	case DW_OP_mul: push(run, a * b); break;
	case DW_OP_and: push(run, a & b); break;
	case DW_OP_or: push(run, a | b); break;
	case DW_OP_xor: push(run, a ^ b); break;
	case DW_OP_shl: push(run, b < 64 ? a << b : 0); break;
	case DW_OP_shr: push(run, b < 64 ? a >> b : 0); break;
	case DW_OP_shra: push(run, shift_signed(a, b)); break;
	case DW_OP_eq: push(run, a == b); break;
	case DW_OP_ne: push(run, a != b); break;
	case DW_OP_ge: push(run, (int64_t)a >= (int64_t)b); break;
	case DW_OP_gt: push(run, (int64_t)a > (int64_t)b); break;
	case DW_OP_le: push(run, (int64_t)a <= (int64_t)b); break;
	case DW_OP_lt: push(run, (int64_t)a < (int64_t)b); break;
	case DW_OP_swap:
		push(run, b);
		push(run, a);
		break;
	case DW_OP_over:
		push(run, a);
		push(run, b);
		push(run, a);
		break;
	default: run->failed = true;
	}
}

bool frame_expression(const unsigned char *bytes, size_t count, const uint64_t *first,
		      const struct frame_state *state, const struct frame_memory *memory,
		      uint64_t *out)
{
	struct expression run = { .bytes = { bytes, bytes + count, false },
				  .start = bytes,
				  .state = state,
				  .memory = memory };

	if (first)
		push(&run, *first);
	for (int step = 0; dwarf_left(&run.bytes) && !run.failed; step++) {
		unsigned op = (unsigned)dwarf_fixed(&run.bytes, 1);

		if (step == STEPS_MOST)
			return false;
		if (!do_constant(&run, op) && !do_unary(&run, op))
			do_binary(&run, op);
		run.failed = run.failed || run.bytes.failed;
	}
	*out = pop(&run);
	return !run.failed;
}
