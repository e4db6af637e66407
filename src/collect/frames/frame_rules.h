/*
 * How to get from a frame to its caller: the call frame information in .eh_frame, which every
 * compiler writes by default, evaluated once for each address and kept.
 */
#ifndef KYMO_COLLECT_FRAMES_FRAME_RULES_H
#define KYMO_COLLECT_FRAMES_FRAME_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "collect/frames/frame_registers.h"
#include "collect/symbols/elf_image.h"

enum frame_rule_kind {
	FRAME_SAME, /* the caller has the same value */
	FRAME_UNDEFINED, /* for the return address: there is no caller */
	FRAME_AT_OFFSET, /* stored at CFA + offset */
	FRAME_IS_OFFSET, /* is CFA + offset */
	FRAME_IN_REGISTER, /* is in another register */
	FRAME_AT_EXPRESSION, /* stored where the expression says */
	FRAME_IS_EXPRESSION,
};

struct frame_rule {
	uint8_t kind;
	uint8_t reg;
	int32_t offset; /* of an expression: in the table's expressions */
};

/* The rules of one address. */
struct frame_rules {
	struct frame_rule cfa; /* FRAME_IS_OFFSET from a register, or FRAME_IS_EXPRESSION */
	uint8_t return_register;
	bool signal; /* an interrupted frame: its address is not a return address */
	bool found; /* false: no rules for this address */
	bool guessed; /* from the instructions of the function */
	struct frame_rule registers[FRAME_REGISTERS];
	uint64_t function; /* where the function begins */
};

struct frame_table {
	const struct elf_image *image;
	unsigned char *index; /* of .eh_frame_hdr: pairs of place and description */
	uint32_t index_count;
	size_t index_bytes; /* its part of the memory for all indexes */
	uint64_t index_address; /* of .eh_frame_hdr, which the pairs are relative to */
	bool loaded;
	struct frame_rules *rules; /* by number of the cache */
	uint64_t *addresses;
	size_t rules_room, addresses_room;
	struct intern cache;
	unsigned char *expressions; /* each with its length, 2 bytes, before it */
	size_t expression_bytes, expression_room;
};

void frame_table_init(struct frame_table *table, const struct elf_image *image);
void frame_table_fini(struct frame_table *table);
/* The rules of an address of the file; NULL: there are none. Valid until the next call. */
const struct frame_rules *frame_table_find(struct frame_table *table, uint64_t address);

/* The same for a function without call frame information, which begins at `function`: a guess
   (collect/frames/frame_prologue.h). */
const struct frame_rules *frame_table_guess(struct frame_table *table, uint64_t address,
					    uint64_t function);

/* Memory of the sampled thread. False: not in the copy. */
struct frame_memory {
	uint64_t start;
	const unsigned char *bytes;
	size_t count;
};
bool frame_memory_read(const struct frame_memory *memory, uint64_t address, uint64_t *out);

struct frame_state {
	uint64_t pc;
	uint64_t registers[FRAME_REGISTERS];
	uint64_t unknown; /* bits of registers whose value is not known */
};
enum frame_step {
	FRAME_STEPPED,
	FRAME_OUTERMOST,
	FRAME_UNREADABLE,
	FRAME_UNKNOWN, /* the CFA depends on a register that is not known */
};
/* Goes to the caller. The state is as before if it does not step. */
enum frame_step frame_rules_step(const struct frame_table *table, const struct frame_rules *rules,
				 const struct frame_memory *memory, struct frame_state *state);

#endif
