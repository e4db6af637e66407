#include "collect/symbols/elf_symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS_MOST (8u << 20)
#define AT_ONCE 4096u

/* Global before weak before local, and a function before a label. */
static uint8_t elf_symbols_rank_of(const Elf64_Sym *symbol)
{
	unsigned binding = ELF64_ST_BIND(symbol->st_info), kind = ELF64_ST_TYPE(symbol->st_info);

	return (uint8_t)((kind == STT_NOTYPE ? 0 : 8) + (symbol->st_size ? 4 : 0) +
			 (binding == STB_GLOBAL ? 2
			  : binding == STB_WEAK ? 1
						: 0));
}

static bool elf_symbols_is_function(const Elf64_Sym *symbol)
{
	unsigned kind = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
	       symbol->st_value && symbol->st_name &&
	       (kind == STT_FUNC || kind == STT_GNU_IFUNC || kind == STT_NOTYPE);
}

static void take_symbols(struct elf_symbols *symbols, const Elf64_Sym *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (elf_symbols_is_function(&from[i]))
			symbols->list[symbols->count++] = (struct elf_symbol){
				.address = from[i].st_value,
				.bytes = from[i].st_size < UINT32_MAX ? (uint32_t)from[i].st_size
								      : UINT32_MAX,
				.name = from[i].st_name,
				.rank = elf_symbols_rank_of(&from[i])
			};
}

static int by_address(const void *a, const void *b)
{
	const struct elf_symbol *one = a, *other = b;

	if (one->address != other->address)
		return one->address < other->address ? -1 : 1;
	if (one->rank != other->rank)
		return one->rank > other->rank ? -1 : 1;
	return one->name < other->name ? -1 : one->name > other->name;
}

/* The first of each address stays. */
static void drop_duplicates(struct elf_symbols *symbols)
{
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++)
		if (!kept || symbols->list[kept - 1].address != symbols->list[i].address)
			symbols->list[kept++] = symbols->list[i];
	symbols->count = kept;
}

static bool find_table(const struct elf_image *image, struct elf_symbols *symbols,
		       struct elf_image_section *out)
{
	static const uint32_t kinds[] = { SHT_SYMTAB, SHT_DYNSYM };

	for (size_t i = 0; i < 2; i++)
		if (elf_image_section(image, kinds[i], NULL, out) &&
		    out->entry_bytes == sizeof(Elf64_Sym) && out->bytes > sizeof(Elf64_Sym) &&
		    elf_image_section_at(image, out->link, &symbols->names)) {
			symbols->dynamic = kinds[i] == SHT_DYNSYM;
			return true;
		}
	return false;
}

void elf_symbols_load(struct elf_symbols *symbols, const struct elf_image *image)
{
	struct elf_image_section table;
	Elf64_Sym *part = malloc(AT_ONCE * sizeof(*part));
	uint64_t count, at = 0;

	*symbols = (struct elf_symbols){ 0 };
	if (part && find_table(image, symbols, &table)) {
		count = table.bytes / sizeof(Elf64_Sym);
		count = count < SYMBOLS_MOST ? count : SYMBOLS_MOST;
		symbols->list = malloc(count * sizeof(*symbols->list));
		while (symbols->list && at < count) {
			size_t wanted = count - at < AT_ONCE ? (size_t)(count - at) : AT_ONCE;
			size_t got = elf_image_read(image, table.offset + at * sizeof(Elf64_Sym),
						    part, wanted * sizeof(*part));

			take_symbols(symbols, part, got / sizeof(*part));
			at += wanted;
		}
	}
	free(part);
	if (symbols->count)
		qsort(symbols->list, symbols->count, sizeof(*symbols->list), by_address);
	drop_duplicates(symbols);
}

void elf_symbols_fini(struct elf_symbols *symbols)
{
	free(symbols->list);
	*symbols = (struct elf_symbols){ 0 };
}

/* A function of unknown size ends where the next one begins. One inside another, such as a label of
   assembler code, may end before the address: then those before it are looked at, too. */
#define LOOK_BACK 16
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < LOOK_BACK && i < low; i++) {
		const struct elf_symbol *symbol = &symbols->list[low - 1 - i];

		if (symbol->bytes ? address - symbol->address < symbol->bytes : !i)
			return symbol;
	}
	return NULL;
}

/* Compilers make copies and parts of a function: foo.constprop.0, foo.cold. */
static void cut_suffix(char *name)
{
	static const char *const suffixes[] = { ".constprop.", ".isra.", ".part.",
						".cold",       ".llvm.", ".lto_priv." };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *at = strstr(name, suffixes[i]);

		if (at && at > name)
			*at = '\0';
	}
}

void elf_symbols_name(const struct elf_symbols *symbols, const struct elf_image *image,
		      const struct elf_symbol *symbol, char *out, size_t out_bytes)
{
	size_t got = 0;

	if (symbol->name < symbols->names.bytes)
		got = elf_image_read(image, symbols->names.offset + symbol->name, out,
				     out_bytes - 1 < symbols->names.bytes - symbol->name
					     ? out_bytes - 1
					     : (size_t)(symbols->names.bytes - symbol->name));
	out[got] = '\0';
	out[strcspn(out, "@")] = '\0';
	cut_suffix(out);
}
