/*
 * Callers, by the unwind tables of exceptions (.eh_frame). The rule of an address is computed once
 * and cached: a frame then costs a cache lookup and two loads. No lock is taken: _dl_find_object
 * needs none.
 *
 * Supported are the forms that compilers emit for ordinary functions: a caller's frame at an offset
 * from the stack or frame pointer, and that of functions which align their stack. The walk ends at
 * any other form.
 */
#include "record/memory/memory.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <kymo/atomic.h>

#if defined(__x86_64__) && defined(__GLIBC__) && \
	(__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 35))

#define RBP 6
#define RSP 7
#define RIP 16
#define CACHE (1u << 15)
#define FRAME_MOST (8u << 20) /* bytes of one frame: more is an error */

enum cfa { CFA_END, CFA_RSP, CFA_RBP, CFA_RBP_LOAD };
enum saved { SAVED_NOT, SAVED_CFA, SAVED_RBP };

/* How to get from an address to its caller; 8 bytes. */
struct rule {
	int32_t cfa_offset;
	int16_t rbp_offset;
	uint8_t cfa;
	uint8_t saved;
};

/* The stored address is combined with the rule, so that a torn entry matches nothing. */
static struct cached {
	uint64_t mixed, rule;
} cache[CACHE];

static uint32_t age;

void memory_unwind_forget(void)
{
	for (uint32_t i = 0; i < CACHE; i++)
		kymo__store_relaxed(&cache[i].mixed, 0);
	kymo__fetch_add_release(&age, 1);
}

uint32_t memory_unwind_age(void)
{
	return kymo__load_acquire(&age);
}

/* ---- reading the tables ---------------------------------------------------------------------- */

static uint64_t uleb(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = *(*at)++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

static int64_t sleb(const uint8_t **at)
{
	int64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = *(*at)++;
		if (shift < 64)
			value |= (int64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= -(1ll << shift);
	return value;
}

static int32_t unwind_word_at(const uint8_t *at)
{
	int32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* The entry for that address, from the sorted table; NULL: none, or an unsupported table. */
static const uint8_t *unwind_find_entry(const uint8_t *head, uintptr_t pc)
{
	uint32_t low = 0, high;
	const uint8_t *table;

	if (head[0] != 1 || head[1] != 0x1b || head[2] != 0x03 || head[3] != 0x3b)
		return NULL;
	high = (uint32_t)unwind_word_at(head + 8);
	table = head + 12;
	if (!high || pc < (uintptr_t)head + (uintptr_t)(intptr_t)unwind_word_at(table))
		return NULL;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if ((uintptr_t)head + (uintptr_t)(intptr_t)unwind_word_at(table + 8ul * middle) <=
		    pc)
			low = middle;
		else
			high = middle;
	}
	return head + unwind_word_at(table + 8ul * low + 4);
}

/* The fields of the common entry (CIE). */
struct common {
	const uint8_t *code, *end;
	uint64_t code_factor;
	int64_t data_factor;
	bool signal;
};

static bool read_common(const uint8_t *cie, struct common *out)
{
	const uint8_t *at = cie + 4, *augmentation;
	uint8_t encoding = 0;
	uint64_t bytes;

	if (unwind_word_at(cie) <= 0 || unwind_word_at(at))
		return false;
	out->end = at + unwind_word_at(cie);
	out->signal = false;
	augmentation = at + 5;
	if (at[4] != 1 || augmentation[0] != 'z')
		return false;
	at = augmentation + strlen((const char *)augmentation) + 1;
	out->code_factor = uleb(&at);
	out->data_factor = sleb(&at);
	if (uleb(&at) != RIP)
		return false;
	bytes = uleb(&at);
	out->code = at + bytes;
	for (augmentation++; *augmentation; augmentation++)
		switch (*augmentation) {
		case 'R': encoding = *at++; break;
		case 'L': at++; break;
		case 'P':
			if ((*at & 0x0f) != 0x0b && (*at & 0x0f) != 0x03)
				return false;
			at += 5;
			break;
		case 'S': out->signal = true; break;
		default: return false;
		}
	return encoding == 0x1b;
}

/* ---- running the instructions ---- */

struct state {
	uint64_t cfa_register;
	int64_t cfa_offset;
	int64_t rbp_offset;
	uint8_t loads_cfa, saved, ends, unknown;
};

struct run {
	struct state now, first, kept[8];
	unsigned depth;
	uintptr_t at, pc;
	const struct common *common;
};

static void saved_at(struct run *run, uint64_t reg, int64_t offset)
{
	if (reg == RBP) {
		run->now.saved = SAVED_CFA;
		run->now.rbp_offset = offset;
	} else if (reg == RIP && offset != -8) {
		run->now.unknown = 1;
	}
}

static void restored(struct run *run, uint64_t reg)
{
	if (reg == RBP) {
		run->now.saved = run->first.saved;
		run->now.rbp_offset = run->first.rbp_offset;
	}
}

/* Matches exactly "frame pointer plus offset", with a load of it if asked for. */
static bool is_rbp_plus(const uint8_t *block, uint64_t bytes, bool load, int64_t *out)
{
	const uint8_t *at = block + 1, *end = block + bytes;

	if (!bytes || block[0] != 0x76)
		return false;
	*out = sleb(&at);
	return load ? at + 1 == end && *at == 0x06 : at == end;
}

static void expression(struct run *run, uint8_t op, const uint8_t **at)
{
	uint64_t reg = op == 0x0f ? 0 : uleb(at), bytes = uleb(at);
	int64_t offset;

	if (op == 0x0f) {
		run->now.loads_cfa = is_rbp_plus(*at, bytes, true, &offset);
		run->now.cfa_register = RBP;
		run->now.cfa_offset = run->now.loads_cfa ? offset : 0;
		run->now.unknown |= !run->now.loads_cfa;
	} else if (reg == RBP) {
		run->now.saved = SAVED_RBP;
		if (op != 0x10 || !is_rbp_plus(*at, bytes, false, &run->now.rbp_offset))
			run->now.unknown = 1;
	} else if (reg == RIP) {
		run->now.unknown = 1;
	}
	*at += bytes;
}

static void define_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	run->now.loads_cfa = 0;
	run->now.unknown = 0;
	run->now.cfa_register = reg;
	run->now.cfa_offset = offset;
}

/* Instructions without a register in the opcode. False: unsupported. */
static bool one_extended(struct run *run, uint8_t op, const uint8_t **at)
{
	uint64_t reg;
	uint16_t half;

	switch (op) {
	case 0x00: break;
	case 0x02: run->at += *(*at)++ * run->common->code_factor; break;
	case 0x03:
		memcpy(&half, *at, 2);
		*at += 2;
		run->at += half * run->common->code_factor;
		break;
	case 0x04:
		run->at += (uint32_t)unwind_word_at(*at) * run->common->code_factor;
		*at += 4;
		break;
	case 0x05:
		reg = uleb(at);
		saved_at(run, reg, (int64_t)uleb(at) * run->common->data_factor);
		break;
	case 0x06: restored(run, uleb(at)); break;
	case 0x07:
		reg = uleb(at);
		run->now.ends |= reg == RIP;
		break;
	case 0x08: restored(run, uleb(at)); break;
	case 0x09:
		reg = uleb(at);
		run->now.unknown |= reg == RBP || reg == RIP;
		uleb(at);
		break;
	case 0x0a:
		if (run->depth >= 8)
			return false;
		run->kept[run->depth++] = run->now;
		break;
	case 0x0b:
		if (!run->depth)
			return false;
		run->now = run->kept[--run->depth];
		break;
	case 0x0c:
		reg = uleb(at);
		define_cfa(run, reg, (int64_t)uleb(at));
		break;
	case 0x0d: run->now.cfa_register = uleb(at); break;
	case 0x0e: run->now.cfa_offset = (int64_t)uleb(at); break;
	case 0x0f:
	case 0x10:
	case 0x16: expression(run, op, at); break;
	case 0x2e: uleb(at); break; /* size of arguments */
	default: return false;
	}
	return true;
}

static bool run_until(struct run *run, const uint8_t *at, const uint8_t *end)
{
	while (at < end && run->at <= run->pc) {
		uint8_t op = *at++;

		if (op >> 6 == 1)
			run->at += (op & 0x3f) * run->common->code_factor;
		else if (op >> 6 == 2)
			saved_at(run, op & 0x3f, (int64_t)uleb(&at) * run->common->data_factor);
		else if (op >> 6 == 3)
			restored(run, op & 0x3f);
		else if (!one_extended(run, op, &at))
			return false;
	}
	return true;
}

static struct rule rule_of(const struct state *state)
{
	struct rule rule = { (int32_t)state->cfa_offset, (int16_t)state->rbp_offset, CFA_END,
			     state->saved };

	if (state->ends || state->unknown || state->cfa_offset != rule.cfa_offset ||
	    (state->saved && state->rbp_offset != rule.rbp_offset))
		return rule;
	if (state->loads_cfa)
		rule.cfa = CFA_RBP_LOAD;
	else if (state->cfa_register == RSP)
		rule.cfa = CFA_RSP;
	else if (state->cfa_register == RBP)
		rule.cfa = CFA_RBP;
	return rule;
}

/* For an address inside the calling instruction. */
static struct rule work_out(uintptr_t pc)
{
	struct rule none = { 0, 0, CFA_END, SAVED_NOT };
	struct dl_find_object object;
	struct common common;
	struct run run;
	const uint8_t *entry, *at, *end;
	uint64_t skip;

	if (_dl_find_object((void *)pc, &object) || !object.dlfo_eh_frame)
		return none;
	entry = unwind_find_entry(object.dlfo_eh_frame, pc);
	if (!entry || unwind_word_at(entry) <= 0 ||
	    !read_common(entry + 4 - unwind_word_at(entry + 4), &common) || common.signal)
		return none;
	memset(&run, 0, sizeof(run));
	run.common = &common;
	run.at = (uintptr_t)(entry + 8) + (uintptr_t)(intptr_t)unwind_word_at(entry + 8);
	run.pc = pc;
	end = entry + 4 + unwind_word_at(entry);
	at = entry + 16;
	if (pc - run.at >= (uint32_t)unwind_word_at(entry + 12))
		return none;
	skip = uleb(&at);
	at += skip;
	if (!run_until(&run, common.code, common.end))
		return none;
	run.first = run.now;
	return run_until(&run, at, end) ? rule_of(&run.now) : none;
}

static struct rule rule_for(uintptr_t pc)
{
	struct cached *cached = &cache[(pc * 0x9E3779B97F4A7C15ull) >> 49];
	uint64_t bits = kymo__load_relaxed(&cached->rule);
	struct rule rule;

	if (kymo__load_relaxed(&cached->mixed) == (bits ^ pc)) {
		memcpy(&rule, &bits, sizeof(rule));
		return rule;
	}
	rule = work_out(pc);
	memcpy(&bits, &rule, sizeof(bits));
	kymo__store_relaxed(&cached->rule, bits);
	kymo__store_relaxed(&cached->mixed, bits ^ pc);
	return rule;
}

/* ---- walking --------------------------------------------------------------------------------- */

static uintptr_t unwind_load(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* Where the frame of the place's caller begins; 0: unknown. */
static uintptr_t frame_of_caller(const struct memory_place *place, const struct rule *rule,
				 struct memory_step *how)
{
	uintptr_t cfa = (rule->cfa == CFA_RSP ? place->sp : place->bp) +
			(uintptr_t)(intptr_t)rule->cfa_offset;

	if (rule->cfa == CFA_END)
		return 0;
	if (rule->cfa == CFA_RBP_LOAD) {
		if (cfa - place->sp > FRAME_MOST || cfa % 8)
			return 0;
		how->cfa_slot = cfa;
		how->cfa = cfa = unwind_load(cfa);
	}
	return cfa > place->sp && cfa - place->sp <= FRAME_MOST && cfa % 8 == 0 ? cfa : 0;
}

bool memory_unwind_step(struct memory_place *place, struct memory_step *how)
{
	struct rule rule = rule_for(place->pc - 1);
	uintptr_t cfa;

	how->cfa_slot = how->bp_slot = how->pc_slot = 0;
	how->uses_bp = rule.cfa == CFA_RBP || rule.cfa == CFA_RBP_LOAD || rule.saved == SAVED_RBP;
	how->passes_bp = rule.saved == SAVED_NOT;
	cfa = frame_of_caller(place, &rule, how);
	if (!cfa)
		return false;
	if (rule.saved != SAVED_NOT) {
		how->bp_slot = (rule.saved == SAVED_CFA ? cfa : place->bp) +
			       (uintptr_t)(intptr_t)rule.rbp_offset;
		place->bp = unwind_load(how->bp_slot);
	}
	how->pc_slot = cfa - 8;
	place->pc = unwind_load(how->pc_slot);
	place->sp = cfa;
	return place->pc > 4096;
}

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

bool memory_unwind_is_ours(uintptr_t pc)
{
	return pc >= (uintptr_t)&__ehdr_start && pc < (uintptr_t)_end;
}

__attribute__((noinline)) size_t memory_unwind(const struct memory_place *from, uintptr_t *out,
					       size_t most, uintptr_t stop_start,
					       uintptr_t stop_end)
{
	struct memory_place place;
	struct memory_step how;
	size_t count = 0;

	if (from) {
		place = *from;
	} else {
		__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
				 : "=r"(place.pc), "=r"(place.sp), "=r"(place.bp));
		place.pc++; /* as a return address: after the instruction */
	}
	do {
		if (place.pc - stop_start < stop_end - stop_start)
			break;
		if (!memory_unwind_is_ours(place.pc))
			out[count++] = place.pc;
	} while (count < most && memory_unwind_step(&place, &how));
	return count;
}

#else

void memory_unwind_forget(void)
{
}

uint32_t memory_unwind_age(void)
{
	return 0;
}

bool memory_unwind_is_ours(uintptr_t pc)
{
	(void)pc;
	return false;
}

bool memory_unwind_step(struct memory_place *place, struct memory_step *how)
{
	(void)place;
	*how = (struct memory_step){ 0 };
	return false;
}

size_t memory_unwind(const struct memory_place *from, uintptr_t *out, size_t most,
		     uintptr_t stop_start, uintptr_t stop_end)
{
	(void)from, (void)out, (void)most, (void)stop_start, (void)stop_end;
	return 0;
}

#endif
