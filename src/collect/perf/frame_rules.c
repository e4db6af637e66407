/* Call frame information: a description of a function (FDE) refers to one of its kind (CIE), and
   both have a program whose result at an address are the rules there. */
#include "collect/perf/frame_rules.h"

#include <dwarf.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/perf/dwarf_bytes.h"
#include "collect/perf/frame_expression.h"
#include "collect/perf/frame_prologue.h"

#define DESCRIPTION_MOST 65536
#define INDEX_MOST (64u << 20)
#define UNINDEXED_MOST 200000 /* descriptions that are read without an index */
#define REMEMBERED_MOST 32
#define RULES_MOST (1u << 20) /* of a file: 300 MB at the very most */
#define EXPRESSION_MOST 4096
#define CODE_BYTES 256 /* of a function, for a guess */
#define SHT_UNWIND 0x70000001u /* of x86_64 */
#define PAIR_BYTES 8 /* of the index: two numbers of 4 bytes */

/* ---- encoded pointers ------------------------------------------------------------------------ */

/* base: the address of the first of the bytes; data: of .eh_frame_hdr. */
static uint64_t read_encoded(struct dwarf_bytes *bytes, const unsigned char *start, uint64_t base,
			     unsigned encoding)
{
	uint64_t here = base + (uint64_t)(bytes->at - start), value;

	switch (encoding & 15) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: value = dwarf_fixed(bytes, 8); break;
	case DW_EH_PE_uleb128: value = dwarf_uleb(bytes); break;
	case DW_EH_PE_udata2: value = dwarf_fixed(bytes, 2); break;
	case DW_EH_PE_udata4: value = dwarf_fixed(bytes, 4); break;
	case DW_EH_PE_sleb128: value = (uint64_t)dwarf_sleb(bytes); break;
	case DW_EH_PE_sdata2: value = (uint64_t)dwarf_signed(bytes, 2); break;
	case DW_EH_PE_sdata4: value = (uint64_t)dwarf_signed(bytes, 4); break;
	default: bytes->failed = true; return 0;
	}
	return (encoding & 0x70) == DW_EH_PE_pcrel ? value + here : value;
}

/* ---- the index ------------------------------------------------------------------------------- */

static void read_index(struct frame_table *table)
{
	const struct elf_image *image = table->image;
	uint64_t offset, left, bytes = image->frame_index_bytes;
	struct dwarf_bytes head;
	unsigned char start[64];
	size_t got, skipped;

	table->index_address = image->frame_index_address;
	if (!bytes || bytes > INDEX_MOST ||
	    !elf_image_offset(image, table->index_address, &offset, &left))
		return;
	got = elf_image_read(image, offset, start, sizeof(start) < bytes ? sizeof(start) : bytes);
	head = (struct dwarf_bytes){ start, start + got, got < 12 };
	/* Version 1, and a table of pairs relative to this section, as all linkers write it. */
	if (head.failed || start[0] != 1 || start[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return;
	dwarf_skip(&head, 4);
	read_encoded(&head, start, table->index_address, start[1]);
	table->index_count = (uint32_t)read_encoded(&head, start, table->index_address, start[2]);
	skipped = (size_t)(head.at - start);
	if (head.failed || table->index_count > (bytes - skipped) / PAIR_BYTES)
		table->index_count = 0;
	table->index = malloc((size_t)table->index_count * PAIR_BYTES + 1);
	if (!table->index || elf_image_read(image, offset + skipped, table->index,
					    (size_t)table->index_count * PAIR_BYTES) !=
				     (size_t)table->index_count * PAIR_BYTES)
		table->index_count = 0;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

struct entry {
	unsigned char bytes[DESCRIPTION_MOST];
	size_t count; /* of bytes, without the length before them */
	uint64_t address; /* of bytes[0] */
};

/* Reads an entry without its length. Nearly all are shorter than 512 bytes. */
static bool read_entry(const struct frame_table *table, uint64_t address, struct entry *out)
{
	uint64_t offset, left;
	uint32_t length;
	size_t got;

	if (!elf_image_offset(table->image, address, &offset, &left))
		return false;
	got = elf_image_read(table->image, offset, out->bytes, left < 512 ? left : 512);
	if (got < 4)
		return false;
	memcpy(&length, out->bytes, 4);
	if (!length || length > DESCRIPTION_MOST || length > left - 4)
		return false; /* the end, or one of more than 4 GB */
	if (length <= got - 4)
		memmove(out->bytes, out->bytes + 4, length);
	else if (elf_image_read(table->image, offset + 4, out->bytes, length) != length)
		return false;
	out->count = length;
	out->address = address + 4;
	return true;
}

struct kind {
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t return_register;
	unsigned pointer_encoding;
	bool augmented, signal;
	struct dwarf_bytes program;
};

/* "zPLR": a length, then what the letters stand for. */
static void read_augmentation(struct kind *kind, struct dwarf_bytes *bytes, const char *letters,
			      const unsigned char *start)
{
	uint64_t length = dwarf_uleb(bytes);
	struct dwarf_bytes data = *bytes;

	dwarf_skip(bytes, length);
	kind->augmented = true;
	for (letters++; *letters && !bytes->failed; letters++) {
		if (*letters == 'R')
			kind->pointer_encoding = (unsigned)dwarf_fixed(&data, 1);
		else if (*letters == 'P')
			read_encoded(&data, start, 0, (unsigned)dwarf_fixed(&data, 1));
		else if (*letters == 'L')
			dwarf_fixed(&data, 1);
		else if (*letters == 'S')
			kind->signal = true;
	}
}

static bool read_kind(const struct entry *entry, struct kind *out)
{
	struct dwarf_bytes bytes = { entry->bytes, entry->bytes + entry->count, false };
	const char *letters;
	unsigned version;

	*out = (struct kind){ .pointer_encoding = DW_EH_PE_absptr };
	if (dwarf_fixed(&bytes, 4) != 0)
		return false; /* not a CIE */
	version = (unsigned)dwarf_fixed(&bytes, 1);
	letters = (const char *)bytes.at;
	if ((version != 1 && version != 3) || !memchr(letters, 0, dwarf_left(&bytes)))
		return false;
	dwarf_skip(&bytes, strlen(letters) + 1);
	out->code_factor = dwarf_uleb(&bytes);
	out->data_factor = dwarf_sleb(&bytes);
	out->return_register = version == 1 ? dwarf_fixed(&bytes, 1) : dwarf_uleb(&bytes);
	if (letters[0] == 'z')
		read_augmentation(out, &bytes, letters, entry->bytes);
	else if (letters[0])
		return false;
	out->program = bytes;
	return !bytes.failed && out->return_register < PERF_RECORD_REGISTERS;
}

/* ---- finding a description ------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	int32_t one, other;

	memcpy(&one, a, sizeof(one));
	memcpy(&other, b, sizeof(other));
	return one < other ? -1 : one > other;
}

/* Where the function of a description begins; false: it is the kind of others, or damaged. */
static bool read_start(const struct frame_table *table, const struct entry *function,
		       struct entry *common, uint64_t *out)
{
	struct dwarf_bytes bytes = { function->bytes + 4, function->bytes + function->count,
				     function->count < 4 };
	struct kind kind;
	uint32_t back;

	memcpy(&back, function->bytes, 4);
	if (bytes.failed || !back || back > function->address ||
	    !read_entry(table, function->address - back, common) || !read_kind(common, &kind))
		return false;
	*out = read_encoded(&bytes, function->bytes, function->address, kind.pointer_encoding);
	return !bytes.failed;
}

static bool put_pair(struct frame_table *table, size_t *room, uint64_t start, uint64_t description)
{
	int64_t pair[2] = { (int64_t)(start - table->index_address),
			    (int64_t)(description - table->index_address) };
	int32_t words[2] = { (int32_t)pair[0], (int32_t)pair[1] };

	if (pair[0] != words[0] || pair[1] != words[1])
		return true; /* too far away for the index */
	if (!grow((void **)&table->index, room, table->index_count, PAIR_BYTES))
		return false;
	memcpy(table->index + (size_t)table->index_count++ * PAIR_BYTES, words, sizeof(words));
	return true;
}

/* Programs that are linked statically have no index: all descriptions are read once. */
static void make_index(struct frame_table *table)
{
	struct entry *entries = malloc(2 * sizeof(*entries));
	struct elf_image_section section;
	size_t room = 0, read = 0;
	uint64_t at, start;

	if (entries &&
	    (elf_image_section(table->image, SHT_PROGBITS, ".eh_frame", &section) ||
	     elf_image_section(table->image, SHT_UNWIND, ".eh_frame", &section)) &&
	    section.bytes <= INDEX_MOST) {
		free(table->index);
		table->index = NULL;
		table->index_address = section.address;
		for (at = section.address; at - section.address < section.bytes;
		     at += entries[0].count + 4) {
			if (read++ >= UNINDEXED_MOST || !read_entry(table, at, &entries[0]))
				break;
			if (read_start(table, &entries[0], &entries[1], &start) &&
			    !put_pair(table, &room, start, at))
				break;
		}
	}
	if (table->index_count)
		qsort(table->index, table->index_count, PAIR_BYTES, by_place);
	free(entries);
}

static uint64_t index_word(const struct frame_table *table, uint32_t pair, unsigned which)
{
	int32_t value;

	memcpy(&value, table->index + (size_t)pair * PAIR_BYTES + which * sizeof(value),
	       sizeof(value));
	return table->index_address + (uint64_t)(int64_t)value;
}

/* The address of the description that may cover an address; 0: none. */
static uint64_t find_description(struct frame_table *table, uint64_t address)
{
	uint32_t low = 0, high;

	if (!table->loaded) {
		table->loaded = true;
		read_index(table);
		if (!table->index_count)
			make_index(table);
	}
	high = table->index_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index_word(table, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? index_word(table, low - 1, 1) : 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

struct program {
	struct frame_table *table;
	const struct kind *kind;
	struct dwarf_bytes bytes;
	const unsigned char *start; /* of the entry, at address `base` */
	uint64_t base;
	uint64_t location, wanted;
	struct frame_rules now, initial;
	struct frame_rules remembered[REMEMBERED_MOST];
	size_t remembered_count;
	bool failed;
};

/* Keeps an expression, and returns its place. */
static int32_t keep_expression(struct program *run)
{
	struct frame_table *table = run->table;
	uint64_t count = dwarf_uleb(&run->bytes);
	const unsigned char *bytes = dwarf_skip(&run->bytes, count);
	uint16_t length = (uint16_t)count;

	if (!bytes || count > EXPRESSION_MOST || table->expression_bytes > INT32_MAX / 2) {
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
static int64_t factored(const struct program *run, uint64_t number)
{
	return (int64_t)(number * (uint64_t)run->kind->data_factor);
}

static void set_rule(struct program *run, uint64_t number, enum frame_rule_kind kind,
		     int64_t offset)
{
	if (number >= PERF_RECORD_REGISTERS)
		return; /* a vector register: not needed */
	if (offset > INT32_MAX || offset < INT32_MIN)
		run->failed = true;
	run->now.registers[number] = (struct frame_rule){ .kind = (uint8_t)kind,
							  .offset = (int32_t)offset };
}

static void set_cfa(struct program *run, uint64_t number, int64_t offset)
{
	if (number >= PERF_RECORD_REGISTERS || offset > INT32_MAX || offset < INT32_MIN)
		run->failed = true;
	run->now.cfa = (struct frame_rule){ .kind = FRAME_IS_OFFSET,
					    .reg = (uint8_t)number,
					    .offset = (int32_t)offset };
}

static void restore(struct program *run, uint64_t number)
{
	if (number < PERF_RECORD_REGISTERS)
		run->now.registers[number] = run->initial.registers[number];
}

/* Operations that change the place; false: another one. */
static bool do_advance(struct program *run, unsigned op)
{
	uint64_t by;

	switch (op) {
	case DW_CFA_set_loc:
		run->location = read_encoded(&run->bytes, run->start, run->base,
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

static bool do_cfa(struct program *run, unsigned op)
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

static void do_expression(struct program *run, enum frame_rule_kind kind)
{
	uint64_t number = dwarf_uleb(&run->bytes);

	set_rule(run, number, kind, keep_expression(run));
}

static void do_register(struct program *run)
{
	uint64_t number = dwarf_uleb(&run->bytes), other = dwarf_uleb(&run->bytes);

	set_rule(run, number, other < PERF_RECORD_REGISTERS ? FRAME_IN_REGISTER : FRAME_UNDEFINED,
		 0);
	if (number < PERF_RECORD_REGISTERS)
		run->now.registers[number].reg = (uint8_t)other;
}

static bool do_rule(struct program *run, unsigned op)
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

static void do_other(struct program *run, unsigned op)
{
	switch (op) {
	case DW_CFA_nop: break;
	case DW_CFA_remember_state:
		if (run->remembered_count == REMEMBERED_MOST)
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

static void do_instruction(struct program *run)
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

/* Until the place of the program is beyond the wanted one. */
static bool run_program(struct program *run)
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

/* ---- rules of an address --------------------------------------------------------------------- */

struct evaluation {
	struct entry function, common;
	struct kind kind;
	struct program program;
};

static bool frame_rules_read_both(struct frame_table *table, uint64_t description,
				  struct evaluation *work)
{
	uint32_t back;

	if (!read_entry(table, description, &work->function) || work->function.count < 4)
		return false;
	memcpy(&back, work->function.bytes, 4);
	return back && back <= work->function.address &&
	       read_entry(table, work->function.address - back, &work->common) &&
	       read_kind(&work->common, &work->kind);
}

static bool evaluate(struct frame_table *table, uint64_t address, struct evaluation *work,
		     struct frame_rules *out)
{
	struct program *run = &work->program;
	struct kind *kind = &work->kind;
	struct entry *entry = &work->function;
	struct dwarf_bytes bytes = { entry->bytes + 4, entry->bytes + entry->count, false };
	uint64_t start = read_encoded(&bytes, entry->bytes, entry->address, kind->pointer_encoding);
	uint64_t length = read_encoded(&bytes, entry->bytes, entry->address,
				       kind->pointer_encoding & 15);

	if (kind->augmented)
		dwarf_skip(&bytes, dwarf_uleb(&bytes));
	if (bytes.failed || address < start || address - start >= length)
		return false;
	*run = (struct program){ .table = table,
				 .kind = kind,
				 .bytes = kind->program,
				 .start = work->common.bytes,
				 .base = work->common.address,
				 .wanted = UINT64_MAX };
	run->now.return_register = (uint8_t)kind->return_register;
	run->now.signal = kind->signal;
	run->now.function = start;
	if (!run_program(run))
		return false;
	run->initial = run->now;
	run->bytes = bytes;
	run->start = entry->bytes;
	run->base = entry->address;
	run->location = start;
	run->wanted = address;
	if (!run_program(run))
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

	if (table->cache.count >= RULES_MOST)
		intern_clear(&table->cache);
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

const struct frame_rules *frame_table_find(struct frame_table *table, uint64_t address)
{
	uint64_t hash = intern_hash_number(0, address), description;
	uint32_t number = intern_find(&table->cache, hash, frame_rules_same_address, table,
				      &address);
	const struct frame_rules *found = number == INTERN_NONE ? NULL : &table->rules[number];
	struct frame_rules rules = { 0 };
	struct evaluation *work;

	if (!found) {
		description = find_description(table, address);
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
	free(table->index);
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
	int sp = perf_record_stack_pointer();
	enum frame_step found;
	bool returns = false;

	if (rules->registers[rules->return_register].kind == FRAME_UNDEFINED)
		return FRAME_OUTERMOST;
	found = find_cfa(&step, &rules->cfa);
	if (found != FRAME_STEPPED)
		return found;
	state->registers[sp] = step.cfa;
	for (int i = 0; i < PERF_RECORD_REGISTERS; i++) {
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
