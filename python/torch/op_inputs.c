/*
 * The inputs of an operator, read from memory: sizes and types of its tensors, numbers of lists.
 * torch's functions for this call Python for tensors of a class that the program defines, and print
 * an error for symbolic sizes; reading has no such effects. So the functions that libtorch exports
 * for it are called once, on tensors that kymo makes, to find where the numbers are.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ops.h"

struct op_layout op_layout;
bool op_layout_known;

static uint64_t op_word_at(uint64_t address)
{
	uint64_t word;

	memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
	return word;
}

/* ---- reading ---- */

struct op_inputs op_inputs_of(const void *function)
{
	struct op_inputs inputs;

	memcpy(&inputs, (const char *)function + op_layout.inputs, sizeof(inputs));
	if (!inputs.values || inputs.count > 1u << 16)
		inputs.count = 0;
	return inputs;
}

#define INLINE_DIMS 5u /* longer ones are outside of the tensor */

int op_tensor(const struct op_value *value, const int64_t **out_sizes, uint32_t *out_dtype)
{
	const char *tensor = (const char *)(uintptr_t)value->payload;
	uint64_t dims;
	uint16_t dtype;

	if (value->tag != OP_TENSOR_TAG || !tensor)
		return -1;
	memcpy(&dims, tensor + op_layout.dims, sizeof(dims));
	if (dims > OP_DIMS_MOST)
		return -1;
	memcpy(&dtype, tensor + op_layout.dtype, sizeof(dtype));
	*out_dtype = dtype;
	*out_sizes = (const int64_t *)(const void *)(tensor + op_layout.dims + 8);
	if (dims > INLINE_DIMS)
		memcpy(out_sizes, tensor + op_layout.dims + 8, sizeof(*out_sizes));
	return (int)dims;
}

size_t op_list(const struct op_value *value, const struct op_value **out_first)
{
	struct {
		const struct op_value *first, *end;
	} list;

	if (value->tag != op_layout.list_tag || !value->payload)
		return 0;
	memcpy(&list, (const char *)(uintptr_t)value->payload + op_layout.list, sizeof(list));
	if (!list.first || list.end < list.first)
		return 0;
	*out_first = list.first;
	return (size_t)(list.end - list.first);
}

/* ---- finding the layout ---- */

/* What _torch_auto.py calls: as_strided(tensor, (2, 1), (1, 3), 1) and expand(tensor, -1, …), of
   four tensors of several sizes and types. */
#define KNOWN_STRIDED 4
#define KNOWN_VALUES 4 /* of as_strided() */
#define SCAN_WORDS 64
#define DTYPE_PLACES 64 /* of two bytes each, after the sizes */

static struct {
	bool search;
	uint8_t wrong[SCAN_WORDS]; /* as the place of the inputs */
	uint8_t dtype_wrong[DTYPE_PLACES];
	uint8_t list_wrong[8];
	uint32_t seen, expands;
	const char *problem;
	int (*sizes)(const void *tensor, int64_t **out);
	int (*dim)(const void *tensor, int64_t *out);
	int (*dtype)(const void *tensor, int32_t *out);
} fit;

void op_inputs_begin(bool search)
{
	void *library = symbols_library();

	memset(&fit, 0, sizeof(fit));
	memset(&op_layout, 0, sizeof(op_layout));
	op_layout_known = false;
	fit.search = search;
	if (!library)
		return;
	fit.sizes = (int (*)(const void *, int64_t **))dlsym(library, "aoti_torch_get_sizes");
	fit.dim = (int (*)(const void *, int64_t *))dlsym(library, "aoti_torch_get_dim");
	fit.dtype = (int (*)(const void *, int32_t *))dlsym(library, "aoti_torch_get_dtype");
	dlclose(library);
}

static bool fits_strided(const struct op_value *values)
{
	return values[0].tag == OP_TENSOR_TAG && values[0].payload &&
	       values[1].tag == values[2].tag && values[1].tag > 5 && values[3].payload == 1 &&
	       values[3].tag > 1 && values[3].tag < values[1].tag;
}

/* Pointers of programs on x86-64, to an object of 8 bytes or more. */
static bool is_pointer(uint64_t word)
{
	return word > 0x10000 && word < 1ull << 47 && !(word & 7);
}

/* What looks like a pointer may be none. The kernel tells without a fault. */
static bool op_is_readable(uint64_t address, size_t bytes)
{
	char copy[256];
	struct iovec to = { copy, bytes < sizeof(copy) ? bytes : sizeof(copy) };
	struct iovec from = { (void *)(uintptr_t)address, to.iov_len };

	return is_pointer(address) &&
	       process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)to.iov_len;
}

/* The values of an as_strided(), or NULL. A known build has one place, which is checked first. */
static const struct op_value *find_values(const uint64_t *words)
{
	const struct op_value *found = NULL;
	uint32_t first = fit.search ? 1 : symbols.sequence_offset / 8 + 1;
	uint32_t end = fit.search ? SCAN_WORDS - 1 : first + 1;

	for (uint32_t i = first; i < end; i++) {
		const struct op_value *values = (const struct op_value *)(uintptr_t)words[i];

		if (!fit.wrong[i] && words[i + 1] == 4 &&
		    op_is_readable(words[i], KNOWN_VALUES * sizeof(*values)) &&
		    fits_strided(values)) {
			op_layout.inputs = i * 8;
			found = values;
		} else {
			fit.wrong[i] = 1;
		}
	}
	return found;
}

/* Where its dimensions are: before its sizes, which are in the tensor or outside. */
static bool see_sizes(const struct op_value *value)
{
	int64_t *sizes = NULL, dims = -1;
	uint64_t base = value->payload, at;

	if (fit.sizes(&value->payload, &sizes) || fit.dim(&value->payload, &dims) || !sizes)
		return false;
	at = (uint64_t)(uintptr_t)sizes - base;
	if (dims <= (int64_t)INLINE_DIMS && !op_layout.dims && at > 16 && at < 512)
		op_layout.dims = (uint32_t)at - 8;
	if (!op_layout.dims || op_word_at(base + op_layout.dims) != (uint64_t)dims)
		return false;
	return dims > (int64_t)INLINE_DIMS
		       ? op_word_at(base + op_layout.dims + 8) == (uint64_t)(uintptr_t)sizes
		       : at == op_layout.dims + 8;
}

static bool see_dtype(const struct op_value *value)
{
	const char *from = (const char *)(uintptr_t)value->payload + op_layout.dims + 8 +
			   2 * INLINE_DIMS * 8;
	int32_t dtype = -1;
	uint16_t word;

	if (fit.dtype(&value->payload, &dtype) ||
	    !op_is_readable((uint64_t)(uintptr_t)from & ~7ull, 2 * DTYPE_PLACES + 8))
		return false;
	for (int i = 0; i < DTYPE_PLACES; i++) {
		memcpy(&word, from + 2 * i, sizeof(word));
		fit.dtype_wrong[i] |= word != dtype;
	}
	return true;
}

/* The list (2, 1). */
static bool see_list(const struct op_value *value)
{
	const struct op_value *first;
	bool any = false;

	op_layout.list_tag = value->tag;
	for (uint32_t i = 1; i < 5; i++) {
		op_layout.list = 8 * i;
		if (!fit.list_wrong[i] && op_is_readable(value->payload, 8 * i + 16) &&
		    op_is_readable(op_word_at(value->payload + 8 * i), 2 * sizeof(*first)) &&
		    op_list(value, &first) == 2 && first[0].payload == 2 && first[1].payload == 1 &&
		    first[0].tag == op_layout.int_tag)
			any = true;
		else
			fit.list_wrong[i] = 1;
	}
	return any;
}

static uint32_t op_only_one(const uint8_t *wrong, uint32_t from, uint32_t to)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = from; i < to; i++)
		if (!wrong[i]) {
			if (found != UINT32_MAX)
				return UINT32_MAX;
			found = i;
		}
	return found;
}

static void see_strided(const void *function)
{
	const struct op_value *values = find_values(function);

	if (!values) {
		fit.problem = "the inputs of an operator are not where they are expected";
		return;
	}
	op_layout.int_tag = values[3].tag;
	if (!see_sizes(&values[0]))
		fit.problem = "the sizes of a tensor are not where they are expected";
	else if (!see_dtype(&values[0]))
		fit.problem = "the type of a tensor is not known";
	else if (!see_list(&values[1]))
		fit.problem = "the numbers of a list are not where they are expected";
	fit.seen++;
}

/* expand(tensor, sizes, *, implicit=False), after the others. */
static void see_expand(const void *function)
{
	struct op_inputs inputs = op_inputs_of(function);

	if (!op_layout.inputs || inputs.count != 3 || (inputs.values[2].payload & 0xff))
		return;
	op_layout.bool_tag = inputs.values[2].tag;
	fit.expands++;
}

void op_inputs_see(const void *function, const char *name)
{
	if (fit.problem || !fit.sizes || !fit.dim || !fit.dtype)
		return;
	/* expand() calls as_strided(), too, with other inputs. */
	if (fit.seen < KNOWN_STRIDED && !strcmp(name, "aten::as_strided"))
		see_strided(function);
	else if (!strcmp(name, "aten::expand"))
		see_expand(function);
}

const char *op_inputs_end(void)
{
	uint32_t dtype = op_only_one(fit.dtype_wrong, 0, DTYPE_PLACES);
	uint32_t list = op_only_one(fit.list_wrong, 1, 5);

	if (!fit.sizes || !fit.dim || !fit.dtype)
		return "libtorch_cpu.so does not export aoti_torch_get_sizes and its kin";
	if (fit.problem)
		return fit.problem;
	if (fit.seen < KNOWN_STRIDED || !fit.expands)
		return "operators with known inputs were not reported";
	if (dtype == UINT32_MAX)
		return "the type of a tensor is not where it is expected";
	if (list == UINT32_MAX)
		return "the numbers of a list are not where they are expected";
	op_layout.dtype = op_layout.dims + 8 + 2 * INLINE_DIMS * 8 + 2 * dtype;
	op_layout.list = 8 * list;
	op_layout_known = true;
	return NULL;
}
