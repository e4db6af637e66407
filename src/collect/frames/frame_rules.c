/* A description of a function (FDE) refers to one of its kind (CIE), and both have a program
   (frame_program.h) whose result at an address are the rules there. */
#include "collect/frames/frame_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/frames/frame_expression.h"
#include "collect/frames/frame_program.h"
#include "collect/frames/frame_prologue.h"

#define RULES_MOST (1u << 16) /* of a file: 20 MB */
#define EXPRESSIONS_MOST (1u << 20) /* bytes of a file's */
#define CODE_BYTES 256 /* of a function, for a guess */

/* ---- rules of an address --------------------------------------------------------------------- */

struct evaluation {
	struct frame_entry function, common;
	struct frame_kind kind;
	struct frame_program program;
};

static bool frame_rules_read_both(struct frame_table *table, uint64_t description,
				  struct evaluation *work)
{
	uint32_t back;

	if (!frame_entry_read(table, description, &work->function) || work->function.count < 4)
		return false;
	memcpy(&back, work->function.bytes, 4);
	return back && back <= work->function.address &&
	       frame_entry_read(table, work->function.address - back, &work->common) &&
	       frame_entry_kind(&work->common, &work->kind);
}

static bool evaluate(struct frame_table *table, uint64_t address, struct evaluation *work,
		     struct frame_rules *out)
{
	struct frame_program *run = &work->program;
	struct frame_kind *kind = &work->kind;
	struct frame_entry *entry = &work->function;
	struct dwarf_bytes bytes = { entry->bytes + 4, entry->bytes + entry->count, false };
	uint64_t start = frame_entry_encoded(&bytes, entry->bytes, entry->address,
					     kind->pointer_encoding);
	uint64_t length = frame_entry_encoded(&bytes, entry->bytes, entry->address,
					      kind->pointer_encoding & 15);

	if (kind->augmented)
		dwarf_skip(&bytes, dwarf_uleb(&bytes));
	if (bytes.failed || address < start || address - start >= length)
		return false;
	*run = (struct frame_program){ .table = table,
				       .kind = kind,
				       .bytes = kind->program,
				       .start = work->common.bytes,
				       .base = work->common.address,
				       .wanted = UINT64_MAX };
	run->now.return_register = (uint8_t)kind->return_register;
	run->now.signal = kind->signal;
	run->now.function = start;
	if (!frame_program_run(run))
		return false;
	run->initial = run->now;
	run->bytes = bytes;
	run->start = entry->bytes;
	run->base = entry->address;
	run->location = start;
	run->wanted = address;
	if (!frame_program_run(run))
		return false;
	*out = run->now;
	out->found = true;
	return true;
}

static bool frame_rules_same_address(const void *owner, uint32_t number, const void *key)
{
	const struct frame_table *table = owner;

	return table->addresses[number] == *(const uint64_t *)key;
}

static const struct frame_rules *keep_rules(struct frame_table *table, uint64_t address,
					    uint64_t hash, const struct frame_rules *rules)
{
	uint32_t number;

	if (!grow((void **)&table->rules, &table->rules_room, table->cache.count,
		  sizeof(*table->rules)) ||
	    !grow((void **)&table->addresses, &table->addresses_room, table->cache.count,
		  sizeof(*table->addresses)))
		return NULL;
	number = intern_add(&table->cache, hash);
	if (number == INTERN_NONE)
		return NULL;
	table->rules[number] = *rules;
	table->addresses[number] = address;
	return &table->rules[number];
}

/* Before new rules are made, which refer to expressions. */
static void frame_rules_make_room(struct frame_table *table)
{
	if (table->cache.count < RULES_MOST && table->expression_bytes < EXPRESSIONS_MOST)
		return;
	intern_clear(&table->cache);
	table->expression_bytes = 0;
}

const struct frame_rules *frame_table_find(struct frame_table *table, uint64_t address)
{
	uint64_t hash = intern_hash_number(0, address), description;
	uint32_t number = intern_find(&table->cache, hash, frame_rules_same_address, table,
				      &address);
	const struct frame_rules *found = number == INTERN_NONE ? NULL : &table->rules[number];
	struct frame_rules rules = { 0 };
	struct evaluation *work;

	if (!found) {
		frame_rules_make_room(table);
		description = frame_entry_find(table, address);
		work = description ? malloc(sizeof(*work)) : NULL;
		if (work && (!frame_rules_read_both(table, description, work) ||
			     !evaluate(table, address, work, &rules)))
			rules.found = false;
		free(work);
		found = keep_rules(table, address, hash, &rules);
	}
	return found && found->found && !found->guessed ? found : NULL;
}

const struct frame_rules *frame_table_guess(struct frame_table *table, uint64_t address,
					    uint64_t function)
{
	uint64_t hash = intern_hash_number(0, address), offset, left;
	uint32_t number = intern_find(&table->cache, hash, frame_rules_same_address, table,
				      &address);
	struct frame_rules rules;
	unsigned char code[CODE_BYTES];

	/* frame_table_find() has put it there. */
	if (number == INTERN_NONE || table->rules[number].guessed || address < function)
		return number != INTERN_NONE && table->rules[number].found ? &table->rules[number]
									   : NULL;
	table->rules[number].guessed = true;
	if (!elf_image_offset(table->image, function, &offset, &left))
		return NULL;
	left = elf_image_read(table->image, offset, code, left < CODE_BYTES ? left : CODE_BYTES);
	if (!frame_prologue_read(code, (size_t)left, address - function, &rules))
		return NULL;
	rules.guessed = true;
	rules.function = function;
	table->rules[number] = rules;
	return &table->rules[number];
}

void frame_table_init(struct frame_table *table, const struct elf_image *image)
{
	*table = (struct frame_table){ .image = image };
}

void frame_table_fini(struct frame_table *table)
{
	frame_entry_forget(table);
	free(table->rules);
	free(table->addresses);
	free(table->expressions);
	intern_fini(&table->cache);
	*table = (struct frame_table){ 0 };
}

/* ---- steps ----------------------------------------------------------------------------------- */

bool frame_memory_read(const struct frame_memory *memory, uint64_t address, uint64_t *out)
{
	if (address < memory->start || memory->count < 8 ||
	    address - memory->start > memory->count - 8)
		return false;
	memcpy(out, memory->bytes + (address - memory->start), 8);
	return true;
}

struct step {
	const struct frame_table *table;
	const struct frame_memory *memory;
	const struct frame_state *from;
	uint64_t cfa;
};

static bool evaluate_at(const struct step *step, int32_t at, const uint64_t *first, uint64_t *out)
{
	uint16_t count;

	memcpy(&count, step->table->expressions + at, 2);
	return frame_expression(step->table->expressions + at + 2, count, first, step->from,
				step->memory, out);
}

/* The caller's value of a register. False: not in the copied memory. */
static bool apply(const struct step *step, const struct frame_rule *rule, uint64_t *value)
{
	uint64_t place = step->cfa + (uint64_t)(int64_t)rule->offset;

	switch (rule->kind) {
	case FRAME_AT_OFFSET: return frame_memory_read(step->memory, place, value);
	case FRAME_IS_OFFSET: *value = place; return true;
	case FRAME_IN_REGISTER: *value = step->from->registers[rule->reg]; return true;
	case FRAME_AT_EXPRESSION:
		return evaluate_at(step, rule->offset, &step->cfa, &place) &&
		       frame_memory_read(step->memory, place, value);
	case FRAME_IS_EXPRESSION: return evaluate_at(step, rule->offset, &step->cfa, value);
	default: return true;
	}
}

/* aarch64 stores a signature in the upper bits of a return address. */
static uint64_t plain_address(uint64_t address)
{
#if defined(__aarch64__)
	return address & 0xffffffffffffull;
#else
	return address;
#endif
}

/* The CFA of a frame. */
static enum frame_step find_cfa(struct step *step, const struct frame_rule *rule)
{
	if (rule->kind == FRAME_IS_EXPRESSION)
		return evaluate_at(step, rule->offset, NULL, &step->cfa) ? FRAME_STEPPED
									 : FRAME_UNREADABLE;
	if (step->from->unknown >> rule->reg & 1)
		return FRAME_UNKNOWN;
	step->cfa = step->from->registers[rule->reg] + (uint64_t)(int64_t)rule->offset;
	return FRAME_STEPPED;
}

/* Sets a register of the caller, or that it is not known. */
static bool find_register(const struct step *step, const struct frame_rule *rule, int number,
			  struct frame_state *state)
{
	uint64_t bit = 1ull << number, from = step->from->unknown;
	bool known;

	if (rule->kind == FRAME_SAME)
		return !(from & bit);
	known = apply(step, rule, &state->registers[number]) &&
		(rule->kind != FRAME_IN_REGISTER || !(from >> rule->reg & 1));
	state->unknown = known ? state->unknown & ~bit : state->unknown | bit;
	return known;
}

enum frame_step frame_rules_step(const struct frame_table *table, const struct frame_rules *rules,
				 const struct frame_memory *memory, struct frame_state *state)
{
	const struct frame_state from = *state;
	struct step step = { table, memory, &from, 0 };
	const int sp = FRAME_SP;
	enum frame_step found;
	bool returns = false;

	if (rules->registers[rules->return_register].kind == FRAME_UNDEFINED)
		return FRAME_OUTERMOST;
	found = find_cfa(&step, &rules->cfa);
	if (found != FRAME_STEPPED)
		return found;
	state->registers[sp] = step.cfa;
	for (int i = 0; i < FRAME_REGISTERS; i++) {
		bool known = find_register(&step, &rules->registers[i], i, state);

		returns |= known && i == rules->return_register;
	}
	state->pc = plain_address(state->registers[rules->return_register]);
	/* A caller is further up the stack; only leaf functions without a frame are at the same
	   place, on machines with a link register. A signal handler may have another stack. */
	if (!returns || (!rules->signal &&
			 (state->registers[sp] < from.registers[sp] ||
			  (state->registers[sp] == from.registers[sp] && state->pc == from.pc)))) {
		*state = from;
		return FRAME_UNREADABLE;
	}
	return state->pc ? FRAME_STEPPED : FRAME_OUTERMOST;
}
