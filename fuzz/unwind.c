/* Call frame information, symbols and build ids of ELF files, and maps of compiled code, all of
   which a sampled program chooses. Inputs that begin with the magic are taken raw, others are edits
   of a small file. */
#include <elf.h>

#include "edits.h"

#include "collect/frames/frame_rules.h"
#include "collect/symbols/elf_symbols.h"
#include "collect/symbols/jit_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ADDRESS 0x1000u
#define FUNCTION (ADDRESS + offsetof(struct small_elf, code))
#define CODE_BYTES 64u

/* A header, a segment, an index of one function, its description, a symbol and its name. */
struct small_elf {
	Elf64_Ehdr head;
	Elf64_Phdr parts[2];
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[2];
	unsigned char index[20];
	unsigned char frames[64];
	unsigned char code[CODE_BYTES];
	char names[32];
};

static void put_word(unsigned char *at, uint32_t word)
{
	memcpy(at, &word, sizeof(word));
}

/* A CIE, whose program gives the CFA, and an FDE with an expression. */
static void make_frames(unsigned char *frames)
{
	static const unsigned char kind[] = { 1,    'z',  'R', 0, 1,	0x78, 16, 1,
					      0x1b, 0x0c, 7,   8, 0x90, 1,    0,  0 };
	static const unsigned char program[] = { 0,    0x44, 0x0e, 16, 0x86, 2,
						 0x0f, 3,    0x77, 8,  0x06, 0 };

	put_word(frames, 4 + sizeof(kind));
	memcpy(frames + 8, kind, sizeof(kind));
	put_word(frames + 24, 12 + sizeof(program));
	put_word(frames + 28, 28);
	put_word(frames + 32, (uint32_t)(offsetof(struct small_elf, code) -
					 offsetof(struct small_elf, frames) - 32));
	put_word(frames + 36, CODE_BYTES);
	memcpy(frames + 40, program, sizeof(program));
}

/* Version 1, and one pair relative to the index. */
static void make_index(unsigned char *index)
{
	static const unsigned char head[] = { 1, 0x1b, 3, 0x3b };

	memcpy(index, head, sizeof(head));
	put_word(index + 8, 1);
	put_word(index + 12,
		 (uint32_t)(offsetof(struct small_elf, code) - offsetof(struct small_elf, index)));
	put_word(index + 16, (uint32_t)(offsetof(struct small_elf, frames) + 24 -
					offsetof(struct small_elf, index)));
}

static void make_unwind_elf(struct handmade *made)
{
	static const char names[32] = "\0work\0.symtab\0.eh_frame";
	struct small_elf *elf = handmade_file(made, "elf", sizeof(*elf));

	memcpy(elf->head.e_ident, ELFMAG, SELFMAG);
	elf->head.e_ident[EI_CLASS] = ELFCLASS64;
	elf->head.e_ident[EI_DATA] = ELFDATA2LSB;
	elf->head.e_phoff = offsetof(struct small_elf, parts);
	elf->head.e_phnum = 2;
	elf->head.e_phentsize = sizeof(Elf64_Phdr);
	elf->head.e_shoff = offsetof(struct small_elf, sections);
	elf->head.e_shnum = 4;
	elf->head.e_shentsize = sizeof(Elf64_Shdr);
	elf->head.e_shstrndx = 2;
	elf->parts[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				      .p_filesz = sizeof(*elf),
				      .p_vaddr = ADDRESS };
	elf->parts[1] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
				      .p_filesz = sizeof(elf->index),
				      .p_vaddr = ADDRESS + offsetof(struct small_elf, index) };
	elf->sections[1] = (Elf64_Shdr){ .sh_name = 6,
					 .sh_type = SHT_SYMTAB,
					 .sh_offset = offsetof(struct small_elf, symbols),
					 .sh_size = sizeof(elf->symbols),
					 .sh_link = 2,
					 .sh_entsize = sizeof(Elf64_Sym) };
	elf->sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					 .sh_offset = offsetof(struct small_elf, names),
					 .sh_size = sizeof(elf->names) };
	elf->sections[3] = (Elf64_Shdr){ .sh_name = 14,
					 .sh_type = SHT_PROGBITS,
					 .sh_addr = ADDRESS + offsetof(struct small_elf, frames),
					 .sh_offset = offsetof(struct small_elf, frames),
					 .sh_size = sizeof(elf->frames) };
	elf->symbols[1] = (Elf64_Sym){ .st_name = 1,
				       .st_info = STT_FUNC,
				       .st_shndx = 1,
				       .st_value = FUNCTION,
				       .st_size = CODE_BYTES };
	make_index(elf->index);
	make_frames(elf->frames);
	memcpy(elf->names, names, sizeof(names));
}

/* As many steps as a walk makes, over a stack of a few words. */
static void walk(struct frame_table *table, uint64_t address)
{
	static const uint64_t stack[32] = { 0x2000, FUNCTION + 8, 0x2040, FUNCTION + 9, 0x2050 };
	struct frame_memory memory = { 0x2000, (const unsigned char *)stack, sizeof(stack) };
	struct frame_state state = { .pc = address };

	for (int i = 0; i < FRAME_REGISTERS; i++)
		state.registers[i] = 0x2000 + 8 * (uint64_t)i;
	for (int i = 0; i < 64; i++) {
		const struct frame_rules *rules = frame_table_find(table, state.pc);

		if (!rules)
			rules = frame_table_guess(table, state.pc, FUNCTION);
		if (!rules || frame_rules_step(table, rules, &memory, &state) != FRAME_STEPPED)
			return;
	}
}

static void ask_symbols(const struct elf_image *image)
{
	char name[ELF_SYMBOLS_NAME_BYTES];
	const struct elf_symbol *symbol;
	struct elf_symbols symbols;

	elf_symbols_load(&symbols, image);
	for (uint64_t at = ADDRESS; at < ADDRESS + 4096; at += 64) {
		symbol = elf_symbols_find(&symbols, at);
		if (symbol)
			elf_symbols_name(&symbols, image, symbol, name, sizeof(name));
	}
	elf_symbols_fini(&symbols);
}

static void ask_frames(const struct elf_image *image)
{
	struct frame_table table;

	frame_table_init(&table, image);
	walk(&table, FUNCTION);
	walk(&table, FUNCTION + 4);
	walk(&table, FUNCTION + CODE_BYTES - 1);
	walk(&table, ADDRESS);
	frame_table_fini(&table);
}

static void ask_map(const char *text, size_t bytes)
{
	struct jit_map *map = jit_map_parse(text, bytes);
	uint64_t start;

	for (uint64_t at = 0; map && at < 0x10000; at += 0x400)
		jit_map_find(map, at, &start);
	jit_map_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct handmade made = { 0 };
	struct elf_image image;

	if (bytes >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG)) {
		memcpy(handmade_file(&made, "elf", bytes), data, bytes);
	} else {
		make_unwind_elf(&made);
		edits_apply(&made, 0, data, bytes);
	}
	if (!elf_image_open_memory(&image, made.files[0].data, made.files[0].bytes)) {
		ask_symbols(&image);
		ask_frames(&image);
	}
	handmade_free(&made);
	ask_map((const char *)data, bytes);
	return 0;
}
