#include "collect/frames/frame_program.h"

#include <dwarf.h>
#include <string.h>

#include "base/grow.h"

#define EXPRESSION_MOST 4096

/* Keeps an expression, and returns its place. */
static int32_t keep_expression(struct frame_program *run)
{
	struct frame_table *table = run->table;
	uint64_t count = dwarf_uleb(&run->bytes);
	const unsigned char *bytes = dwarf_skip(&run->bytes, count);
	uint16_t length = (uint16_t)count;

	if (!bytes || count > EXPRESSION_MOST) {
		run->failed = true;
		return 0;
	}
	while (table->expression_room - table->expression_bytes < count + 2) {
		size_t more = table->expression_room ? table->expression_room * 2 : 8192;

		if (!grow_to((void **)&table->expressions, more, 1)) {
			run->failed = true;
			return 0;
		}
		table->expression_room = more;
	}
	memcpy(table->expressions + table->expression_bytes, &length, 2);
	memcpy(table->expressions + table->expression_bytes + 2, bytes, count);
	table->expression_bytes += count + 2;
	return (int32_t)(table->expression_bytes - count - 2);
}

/* A file may have numbers whose product exceeds 64 bits: it wraps, and is then mostly refused. */
static int64_t factored(const struct frame_program *run, uint64_t number)
{
	return (int64_t)(number * (uint64_t)run->kind->data_factor);
}

static void set_rule(struct frame_program *run, uint64_t number, enum frame_rule_kind kind,
		     int64_t offset)
{
	if (number >= FRAME_REGISTERS)
		return; /* a vector register: not needed */
	if (offset > INT32_MAX || offset < INT32_MIN)
		run->failed = true;
	run->now.registers[number] = (struct frame_rule){ .kind = (uint8_t)kind,
							  .offset = (int32_t)offset };
}

static void set_cfa(struct frame_program *run, uint64_t number, int64_t offset)
{
	if (number >= FRAME_REGISTERS || offset > INT32_MAX || offset < INT32_MIN)
		run->failed = true;
	run->now.cfa = (struct frame_rule){ .kind = FRAME_IS_OFFSET,
					    .reg = (uint8_t)number,
					    .offset = (int32_t)offset };
}

static void restore(struct frame_program *run, uint64_t number)
{
	if (number < FRAME_REGISTERS)
		run->now.registers[number] = run->initial.registers[number];
}

/* Operations that change the place; false: another one. */
static bool do_advance(struct frame_program *run, unsigned op)
{
	uint64_t by;

	switch (op) {
	case DW_CFA_set_loc:
		run->location = frame_entry_encoded(&run->bytes, run->start, run->base,
						    run->kind->pointer_encoding);
		return true;
	case DW_CFA_advance_loc1: by = dwarf_fixed(&run->bytes, 1); break;
	case DW_CFA_advance_loc2: by = dwarf_fixed(&run->bytes, 2); break;
	case DW_CFA_advance_loc4: by = dwarf_fixed(&run->bytes, 4); break;
	default: return false;
	}
	run->location += by * run->kind->code_factor;
	return true;
}

static bool do_cfa(struct frame_program *run, unsigned op)
{
	struct dwarf_bytes *bytes = &run->bytes;
	uint64_t number;

	switch (op) {
	case DW_CFA_def_cfa:
		number = dwarf_uleb(bytes);
		set_cfa(run, number, (int64_t)dwarf_uleb(bytes));
		return true;
	case DW_CFA_def_cfa_sf:
		number = dwarf_uleb(bytes);
		set_cfa(run, number, factored(run, (uint64_t)dwarf_sleb(bytes)));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa(run, dwarf_uleb(bytes), run->now.cfa.offset);
		return true;
	case DW_CFA_def_cfa_offset:
		set_cfa(run, run->now.cfa.reg, (int64_t)dwarf_uleb(bytes));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(run, run->now.cfa.reg, factored(run, (uint64_t)dwarf_sleb(bytes)));
		return true;
	case DW_CFA_def_cfa_expression:
		run->now.cfa = (struct frame_rule){ .kind = FRAME_IS_EXPRESSION,
						    .offset = keep_expression(run) };
		return true;
	default: return false;
	}
}

static void do_expression(struct frame_program *run, enum frame_rule_kind kind)
{
	uint64_t number = dwarf_uleb(&run->bytes);

	set_rule(run, number, kind, keep_expression(run));
}

static void do_register(struct frame_program *run)
{
	uint64_t number = dwarf_uleb(&run->bytes), other = dwarf_uleb(&run->bytes);

	set_rule(run, number, other < FRAME_REGISTERS ? FRAME_IN_REGISTER : FRAME_UNDEFINED, 0);
	if (number < FRAME_REGISTERS)
		run->now.registers[number].reg = (uint8_t)other;
}

static bool do_rule(struct frame_program *run, unsigned op)
{
	struct dwarf_bytes *bytes = &run->bytes;
	uint64_t number;

	switch (op) {
	case DW_CFA_offset_extended:
		number = dwarf_uleb(bytes);
		set_rule(run, number, FRAME_AT_OFFSET, factored(run, dwarf_uleb(bytes)));
		return true;
	case DW_CFA_offset_extended_sf:
		number = dwarf_uleb(bytes);
		set_rule(run, number, FRAME_AT_OFFSET, factored(run, (uint64_t)dwarf_sleb(bytes)));
		return true;
	case DW_CFA_val_offset:
		number = dwarf_uleb(bytes);
		set_rule(run, number, FRAME_IS_OFFSET, factored(run, dwarf_uleb(bytes)));
		return true;
	case DW_CFA_val_offset_sf:
		number = dwarf_uleb(bytes);
		set_rule(run, number, FRAME_IS_OFFSET, factored(run, (uint64_t)dwarf_sleb(bytes)));
		return true;
	case DW_CFA_restore_extended: restore(run, dwarf_uleb(bytes)); return true;
	case DW_CFA_undefined: set_rule(run, dwarf_uleb(bytes), FRAME_UNDEFINED, 0); return true;
	case DW_CFA_same_value: set_rule(run, dwarf_uleb(bytes), FRAME_SAME, 0); return true;
	case DW_CFA_register: do_register(run); return true;
	case DW_CFA_expression: do_expression(run, FRAME_AT_EXPRESSION); return true;
	case DW_CFA_val_expression: do_expression(run, FRAME_IS_EXPRESSION); return true;
	default: return false;
	}
}

static void do_other(struct frame_program *run, unsigned op)
{
	switch (op) {
	case DW_CFA_nop: break;
	case DW_CFA_remember_state:
		if (run->remembered_count == FRAME_PROGRAM_REMEMBERED)
			run->failed = true;
		else
			run->remembered[run->remembered_count++] = run->now;
		break;
	case DW_CFA_restore_state:
		if (!run->remembered_count)
			run->failed = true;
		else
			run->now = run->remembered[--run->remembered_count];
		break;
	case DW_CFA_GNU_args_size: dwarf_uleb(&run->bytes); break;
	case DW_CFA_GNU_window_save: break; /* aarch64: the return address is signed */
	default: run->failed = true;
	}
}

static void do_instruction(struct frame_program *run)
{
	unsigned op = (unsigned)dwarf_fixed(&run->bytes, 1), low = op & 63;

	if (run->bytes.failed)
		return;
	if ((op & 192) == DW_CFA_advance_loc)
		run->location += low * run->kind->code_factor;
	else if ((op & 192) == DW_CFA_offset)
		set_rule(run, low, FRAME_AT_OFFSET, factored(run, dwarf_uleb(&run->bytes)));
	else if ((op & 192) == DW_CFA_restore)
		restore(run, low);
	else if (!do_advance(run, op) && !do_cfa(run, op) && !do_rule(run, op))
		do_other(run, op);
}

bool frame_program_run(struct frame_program *run)
{
	while (dwarf_left(&run->bytes) && !run->failed && !run->bytes.failed) {
		struct frame_rules before = run->now;

		do_instruction(run);
		if (run->location > run->wanted) {
			run->now = before;
			break;
		}
	}
	return !run->failed && !run->bytes.failed;
}
