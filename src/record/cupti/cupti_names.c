/* Names of kernels by the address of their symbol, which is looked up at each launch. A table of
   names that were used before is enough: programs have some hundred kernels. */
#include <string.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

#define NAMES 4096u
#define WINDOW 8u
#define NAME_MOST 4096u /* bytes of a symbol */

struct known {
	const char *text; /* atomic; stored last */
	uint64_t begin; /* its first bytes: another text at this address differs; atomic */
	uint32_t id; /* atomic */
	uint32_t generation; /* atomic */
};

static struct known names[NAMES];
static uint32_t names_generation; /* atomic */

/* The first 8 bytes, or fewer if the text is shorter. */
static uint64_t names_begin(const char *text)
{
	uint64_t begin = 0;

	for (unsigned i = 0; i < 8 && text[i]; i++)
		begin |= (uint64_t)(unsigned char)text[i] << (8 * i);
	return begin;
}

static uint32_t names_place(const char *text, uint32_t step)
{
	return (uint32_t)(((uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15u >> 40) + step) % NAMES;
}

static uint32_t names_intern(const char *text)
{
	return kymo_name_full(text, strnlen(text, NAME_MOST), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
}

/* Threads may write one place at the same time: a reader compares all of it. */
static void names_keep(struct known *known, const char *text, uint64_t begin, uint32_t id,
		       uint32_t generation)
{
	kymo__store_relaxed(&known->text, NULL);
	kymo__fence_release();
	kymo__store_relaxed(&known->begin, begin);
	kymo__store_relaxed(&known->id, id);
	kymo__store_relaxed(&known->generation, generation);
	kymo__store_release(&known->text, text);
}

static uint32_t cupti_names_find(const char *text, uint64_t begin, uint32_t generation)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		const struct known *known = &names[names_place(text, i)];
		uint32_t id;

		if (kymo__load_acquire(&known->text) != text)
			continue;
		id = kymo__load_relaxed(&known->id);
		if (kymo__load_relaxed(&known->begin) == begin &&
		    kymo__load_relaxed(&known->generation) == generation)
			return id;
	}
	return 0;
}

uint32_t cupti_kernel_name(const char *symbol)
{
	uint32_t generation = kymo__load_relaxed(&names_generation), id, at = 0;
	uint64_t begin;

	if (!symbol || !*symbol)
		return 0;
	begin = names_begin(symbol);
	id = cupti_names_find(symbol, begin, generation);
	if (KYMO__LIKELY(id != 0))
		return id;
	id = names_intern(symbol);
	while (at < WINDOW - 1 && kymo__load_relaxed(&names[names_place(symbol, at)].text) &&
	       kymo__load_relaxed(&names[names_place(symbol, at)].text) != symbol)
		at++;
	if (id)
		names_keep(&names[names_place(symbol, at)], symbol, begin, id, generation);
	return id;
}

void cupti_names_forget(void)
{
	kymo__fetch_add_relaxed(&names_generation, 1);
}

uint32_t cupti_text_name(const char *text)
{
	return cupti_kernel_name(text); /* the same look-up, by address */
}
