/*
 * Names of operators, and the shapes of their inputs as texts. Both are looked up in tables of the
 * thread by a hash; texts are made only for what is new. Programs with inputs of ever new sizes
 * have endless shapes: past SHAPES_MOST the row has its FLOPs alone, and kymo.gaps counts it.
 */
#include <stdio.h>
#include <string.h>

#include <kymo/atomic.h>

#include "ops.h"

#define SHAPES_MOST 8192 /* texts of a process */
#define TEXT_BYTES 256
#define LISTED_MOST 16 /* tensors of a list */
#define INPUTS_MOST 32

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
	uint64_t hash = bytes, word;

	for (; bytes >= 8; text += 8, bytes -= 8) {
		memcpy(&word, text, 8);
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, text, bytes);
	return mix(hash, word);
}

/* ---- names ---- */

/* Around each node of backward, which has a row of its own. */
static bool is_frame(const char *name)
{
	static const char engine[] = "autograd::engine::evaluate_function: ";

	return !strncmp(name, engine, sizeof(engine) - 1);
}

const struct op_name *op_name_of(struct op_thread *ops, const char *name)
{
	size_t bytes = strnlen(name, 255);
	uint64_t hash = hash_text(name, bytes);
	struct op_name *place = &ops->names[hash >> 56];

	if (KYMO__LIKELY(place->hash == hash && place->bytes == bytes &&
			 !memcmp(place->text, name,
				 bytes < sizeof(place->text) ? bytes : sizeof(place->text))))
		return place;
	place->hash = hash;
	place->bytes = (uint8_t)bytes;
	place->skipped = is_frame(name);
	place->formula = (uint8_t)op_flops_formula(name);
	memset(place->text, 0, sizeof(place->text));
	memcpy(place->text, name, bytes < sizeof(place->text) ? bytes : sizeof(place->text));
	place->id = place->skipped ? 0 : kymo_name_full(name, bytes, NULL, 0, 0, KYMO_SOURCE_OP, 0);
	return place;
}

const char *op_dtype(int64_t dtype)
{
	/* c10/core/ScalarType.h */
	static const char *const words[] = {
		"uint8",	   "int8",
		"int16",	   "int32",
		"int64",	   "float16",
		"float32",	   "float64",
		"complex32",	   "complex64",
		"complex128",	   "bool",
		"qint8",	   "quint8",
		"qint32",	   "bfloat16",
		"quint4x2",	   "quint2x4",
		"bits1x8",	   "bits2x4",
		"bits4x2",	   "bits8",
		"bits16",	   "float8_e5m2",
		"float8_e4m3fn",   "float8_e5m2fnuz",
		"float8_e4m3fnuz", "uint16",
		"uint32",	   "uint64",
	};

	return dtype >= 0 && dtype < (int64_t)(sizeof(words) / sizeof(words[0])) ? words[dtype]
										 : NULL;
}

/* ---- shapes ---- */

static uint64_t hash_tensor(uint64_t hash, const struct op_value *value)
{
	const int64_t *sizes;
	uint32_t dtype;
	int dims = op_tensor(value, &sizes, &dtype);

	if (dims < 0)
		return hash;
	hash = mix(hash, dtype << 8 | (uint32_t)dims | 1u << 30);
	for (int i = 0; i < dims; i++)
		hash = mix(hash, (uint64_t)sizes[i]);
	return hash;
}

/* Numbers count only for operators with a formula. */
static uint64_t op_hash_list(uint64_t hash, const struct op_value *value, bool numbers)
{
	const struct op_value *first = NULL;
	size_t count = op_list(value, &first);

	if (count && first->tag == OP_TENSOR_TAG) {
		hash = mix(hash, count | 1u << 31);
		for (size_t i = 0; i < count && i < LISTED_MOST; i++)
			hash = hash_tensor(hash, &first[i]);
	} else if (numbers) {
		for (size_t i = 0; i < count && i < LISTED_MOST; i++)
			hash = mix(hash, first[i].payload);
	}
	return hash;
}

static uint64_t hash_inputs(const struct op_name *name, const struct op_inputs *inputs)
{
	uint64_t hash = name->formula, count = inputs->count;

	if (count > INPUTS_MOST)
		count = INPUTS_MOST;
	for (uint64_t i = 0; i < count; i++) {
		const struct op_value *value = &inputs->values[i];

		if (value->tag == OP_TENSOR_TAG)
			hash = hash_tensor(hash, value);
		else if (value->tag == op_layout.list_tag)
			hash = op_hash_list(hash, value, name->formula);
		else if (name->formula && value->tag == op_layout.bool_tag)
			hash = mix(hash, value->payload & 0xff);
	}
	return hash ? hash : 1;
}

/* ---- texts ---- */

struct texts {
	char shapes[TEXT_BYTES], dtypes[TEXT_BYTES];
	size_t shape_bytes, dtype_bytes;
};

static void op_put(char *out, size_t *used, const char *text)
{
	size_t bytes = strlen(text);

	if (bytes >= TEXT_BYTES - 4 - *used) { /* room for "…" */
		if (*used < TEXT_BYTES - 4 && (!*used || out[*used - 1] != '\xa6'))
			*used += (size_t)snprintf(out + *used, TEXT_BYTES - *used, "\u2026");
		return;
	}
	memcpy(out + *used, text, bytes + 1);
	*used += bytes;
}

static void put_tensor(struct texts *texts, const struct op_value *value)
{
	const int64_t *sizes;
	uint32_t dtype;
	int dims = op_tensor(value, &sizes, &dtype);
	const char *word;
	char text[OP_DIMS_MOST * 22 + 4] = "[";
	size_t used = 1;

	if (dims < 0)
		return;
	for (int i = 0; i < dims; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld", i ? "," : "",
					 (long long)sizes[i]);
	snprintf(text + used, sizeof(text) - used, "]");
	op_put(texts->shapes, &texts->shape_bytes,
	       texts->shape_bytes && texts->shapes[texts->shape_bytes - 1] != '(' ? " " : "");
	op_put(texts->shapes, &texts->shape_bytes, text);
	word = op_dtype(dtype);
	op_put(texts->dtypes, &texts->dtype_bytes, texts->dtype_bytes ? " " : "");
	op_put(texts->dtypes, &texts->dtype_bytes, word ? word : "?");
}

static void put_list(struct texts *texts, const struct op_value *value)
{
	const struct op_value *first = NULL;
	size_t count = op_list(value, &first);

	if (!count || first->tag != OP_TENSOR_TAG)
		return;
	op_put(texts->shapes, &texts->shape_bytes, texts->shape_bytes ? " (" : "(");
	for (size_t i = 0; i < count && i < LISTED_MOST; i++)
		put_tensor(texts, &first[i]);
	op_put(texts->shapes, &texts->shape_bytes, count > LISTED_MOST ? " \u2026)" : ")");
}

static uint32_t text_name(const char *text, size_t bytes)
{
	return bytes ? kymo_name_full(text, bytes, NULL, 0, 0, KYMO_SOURCE_OP, 0) : 0;
}

/* Counts shapes for which there is no text: a row each time the number has doubled. */
static void count_unnamed(void)
{
	static const char cause[] = "operators: more than 8,192 shapes; later ones have no text";
	static uint64_t unnamed;
	uint64_t count = kymo__fetch_add_relaxed(&unnamed, 1) + 1;
	struct schema_gap_row row = { .start_ticks = kymo__ticks() };

	if (count & (count - 1))
		return;
	row.events = count > 1 ? count / 2 : 1;
	row.cause = kymo_name_full(cause, sizeof(cause) - 1, NULL, 0, 0, KYMO_SOURCE_OP, 0);
	kymo__append(SCHEMA_GAPS, &row);
}

static void make_texts(struct op_shape *shape, const struct op_inputs *inputs)
{
	static uint32_t made;
	struct texts texts = { .shape_bytes = 0 };

	shape->shapes = shape->dtypes = 0;
	for (uint64_t i = 0; i < inputs->count && i < INPUTS_MOST; i++)
		if (inputs->values[i].tag == OP_TENSOR_TAG)
			put_tensor(&texts, &inputs->values[i]);
		else
			put_list(&texts, &inputs->values[i]);
	shape->dtypes = text_name(texts.dtypes, texts.dtype_bytes);
	if (kymo__load_relaxed(&made) >= SHAPES_MOST) {
		count_unnamed();
		return;
	}
	kymo__fetch_add_relaxed(&made, 1);
	shape->shapes = text_name(texts.shapes, texts.shape_bytes);
}

const struct op_shape *op_shape_of(struct op_thread *ops, const struct op_name *name,
				   const struct op_inputs *inputs)
{
	uint64_t hash = hash_inputs(name, inputs);
	struct op_shape *place = &ops->shapes[hash >> 54];

	if (KYMO__LIKELY(place->hash == hash))
		return place;
	place->hash = hash;
	make_texts(place, inputs);
	place->counted = name->formula && op_flops(name->formula, inputs, &place->flops);
	if (!place->counted)
		place->flops = 0;
	return place;
}
