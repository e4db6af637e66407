#include "collect/perf/native_walk.h"

#include <string.h>

#include "collect/frames/frame_prologue.h"

#define FRAME_MOST 8192u /* bytes of a frame whose pointer is not known */
#define STACK_MOST (8u << 20)

struct walking {
	struct address_space *space;
	struct frame_memory memory;
	struct frame_state state;
	struct native_walk *out;
	bool stack_is_cut;
};

static struct native_frame *native_walk_put(struct walking *walking, uint64_t address)
{
	const struct mapping *mapping = address_space_at(walking->space, address);
	struct native_frame *frame = &walking->out->frames[walking->out->count];
	const int sp = FRAME_SP;

	if (!mapping) {
		walking->out->unmapped = true;
		return NULL;
	}
	frame->address = address;
	frame->module = NULL;
	frame->in_file = frame->function = 0;
	frame->sp = walking->state.registers[sp];
	frame->cfa = 0;
	memcpy(frame->registers, walking->state.registers, sizeof(frame->registers));
	if (mapping->module && module_open(mapping->module) &&
	    module_address(mapping->module, mapping, address, &frame->in_file))
		frame->module = mapping->module;
	else if (mapping->module) { /* a file that cannot be read: its name is all that is known */
		frame->module = mapping->module;
		frame->in_file = address - mapping->start + mapping->file_offset;
	}
	walking->out->count++;
	return frame;
}

/* Code without call frame information, if it keeps a frame pointer: compiled at run time, or old
   assembler. */
static enum frame_step step_by_pointer(struct walking *walking)
{
	const int sp = FRAME_SP, fp = FRAME_FP;
	uint64_t here = walking->state.registers[fp], caller, pc;

	if (walking->state.unknown >> fp & 1)
		return FRAME_UNKNOWN;
	if (!here)
		return FRAME_OUTERMOST;
	if (here < walking->state.registers[sp] || here % 8 ||
	    !frame_memory_read(&walking->memory, here, &caller) ||
	    !frame_memory_read(&walking->memory, here + 8, &pc))
		return FRAME_UNREADABLE;
	if (!pc)
		return FRAME_OUTERMOST;
	if (!address_space_at(walking->space, pc))
		return FRAME_UNREADABLE;
	walking->state.registers[fp] = caller;
	walking->state.registers[sp] = here + 16;
	walking->state.pc = pc;
	return FRAME_STEPPED;
}

/* The code before an address; false: it cannot be read. */
static bool read_code_before(const struct walking *walking, uint64_t address,
			     unsigned char code[FRAME_PROLOGUE_CALL_BYTES])
{
	const struct mapping *mapping = address_space_at(walking->space, address - 1);
	uint64_t in_file, offset, left;

	return mapping && mapping->module && module_open(mapping->module) &&
	       module_address(mapping->module, mapping, address - FRAME_PROLOGUE_CALL_BYTES,
			      &in_file) &&
	       elf_image_offset(&mapping->module->image, in_file, &offset, &left) &&
	       elf_image_read(&mapping->module->image, offset, code, FRAME_PROLOGUE_CALL_BYTES) ==
		       FRAME_PROLOGUE_CALL_BYTES;
}

/* Whether an address is after a call, as return addresses are. */
static bool follows_call(const struct walking *walking, uint64_t address)
{
	unsigned char code[FRAME_PROLOGUE_CALL_BYTES];

	return read_code_before(walking, address, code) &&
	       frame_prologue_is_call(code, sizeof(code));
}

static enum frame_step step_by_guess(struct walking *walking, struct native_frame *frame)
{
	struct module *module = frame->module;
	const struct elf_symbol *symbol = module && module->open
						  ? elf_symbols_find(module_symbols(module),
								     frame->in_file)
						  : NULL;
	const struct frame_rules *rules = symbol ? frame_table_guess(&module->frames,
								     frame->in_file,
								     symbol->address)
						 : NULL;
	struct frame_state before = walking->state;

	if (rules &&
	    frame_rules_step(&module->frames, rules, &walking->memory, &walking->state) ==
		    FRAME_STEPPED &&
	    follows_call(walking, walking->state.pc))
		return FRAME_STEPPED;
	walking->state = before;
	return step_by_pointer(walking);
}

/* ---- frame pointers that are not known ------------------------------------------------------- */

/* How well a word of the stack fits as the return address of a function. */
enum fit { FIT_NONE, FIT_CALL, FIT_CALL_OF_FUNCTION };

static enum fit fit_of(const struct walking *walking, const struct native_frame *frame,
		       uint64_t returns)
{
	unsigned char code[FRAME_PROLOGUE_CALL_BYTES];
	int32_t distance;

	if (!address_space_at(walking->space, returns) ||
	    !read_code_before(walking, returns, code) ||
	    !frame_prologue_is_call(code, sizeof(code)))
		return FIT_NONE;
	if (frame_prologue_call_distance(code, sizeof(code), &distance) &&
	    returns + (uint64_t)(int64_t)distance ==
		    frame->address - frame->in_file + frame->function)
		return FIT_CALL_OF_FUNCTION;
	return FIT_CALL;
}

/* A frame pointer is further up; a caller without one may use the register for a number. */
static bool may_be_frame_pointer(const struct walking *walking, uint64_t cfa, uint64_t value)
{
	return value < walking->memory.start ||
	       (value >= cfa && value - cfa < STACK_MOST && value % 8 == 0);
}

static bool has_saved_pointer(const struct walking *walking, const struct frame_rules *rules,
			      uint64_t cfa)
{
	const struct frame_rule *rule = &rules->registers[FRAME_FP];
	uint64_t saved;

	return rule->kind == FRAME_AT_OFFSET &&
	       frame_memory_read(&walking->memory, cfa + (uint64_t)(int64_t)rule->offset, &saved) &&
	       may_be_frame_pointer(walking, cfa, saved);
}

/*
 * The registers of a waiting thread are not known, except for its stack pointer. Where the frame of
 * a function is found by its frame pointer, and no function that it called has saved that, its
 * return address is looked for on the stack: the nearest that follows a call of this very function,
 * or else the nearest that follows any call and has a saved frame pointer beside it.
 */
static bool recover_frame_pointer(struct walking *walking, const struct frame_rules *rules,
				  const struct native_frame *frame)
{
	const int sp = FRAME_SP, fp = FRAME_FP;
	const struct frame_rule *back = &rules->registers[rules->return_register];
	uint64_t from = (walking->state.registers[sp] + 31) & ~15ull, found = 0, returns;
	enum fit fit = FIT_NONE;

	if (rules->cfa.reg != fp || back->kind != FRAME_AT_OFFSET)
		return false;
	for (uint64_t cfa = from; fit != FIT_CALL_OF_FUNCTION && cfa - from < FRAME_MOST;
	     cfa += 16) {
		if (!frame_memory_read(&walking->memory, cfa + (uint64_t)(int64_t)back->offset,
				       &returns))
			break;
		fit = fit_of(walking, frame, returns);
		if (fit == FIT_CALL_OF_FUNCTION ||
		    (fit == FIT_CALL && !found && has_saved_pointer(walking, rules, cfa)))
			found = cfa;
	}
	if (!found)
		return false;
	walking->state.registers[fp] = found - (uint64_t)(int64_t)rules->cfa.offset;
	walking->state.unknown &= ~(1ull << fp);
	return true;
}

static enum frame_step step_from(struct walking *walking, struct native_frame *frame, bool *signal)
{
	struct module *module = frame->module;
	const struct frame_rules *rules = module && module->open ? frame_table_find(&module->frames,
										    frame->in_file)
								 : NULL;
	enum frame_step step;

	*signal = rules && rules->signal;
	if (!rules)
		return step_by_guess(walking, frame);
	frame->function = rules->function;
	step = frame_rules_step(&module->frames, rules, &walking->memory, &walking->state);
	if (step == FRAME_UNKNOWN && recover_frame_pointer(walking, rules, frame))
		step = frame_rules_step(&module->frames, rules, &walking->memory, &walking->state);
	frame->cfa = walking->state.registers[FRAME_SP];
	return step;
}

void native_walk(struct address_space *space, const struct perf_record *sample,
		 struct native_walk *out)
{
	struct walking walking = { .space = space, .out = out };
	enum frame_step step = FRAME_STEPPED;
	bool exact = true, signal; /* the first address is not a return address */
	struct native_frame *frame;

	out->count = 0;
	out->complete = out->cut = out->unmapped = false;
	walking.state.pc = sample->sample.pc;
	memcpy(walking.state.registers, sample->sample.registers, sizeof(walking.state.registers));
	walking.state.unknown = sample->sample.unknown;
	walking.memory = (struct frame_memory){ sample->sample.registers[FRAME_SP],
						sample->sample.stack, sample->sample.stack_bytes };
	while (step == FRAME_STEPPED && out->count < NATIVE_WALK_DEEPEST) {
		/* A return address may be after the end of its function. */
		frame = native_walk_put(&walking, exact ? walking.state.pc : walking.state.pc - 1);
		if (!frame)
			return;
		step = step_from(&walking, frame, &signal);
		exact = signal;
	}
	out->complete = step == FRAME_OUTERMOST;
	out->cut = !out->complete && sample->sample.stack_is_cut;
}
