/*
 * Floating-point operations of an operator, by the formulas of torch.utils.flop_counter, so that
 * numbers agree: a multiplication and an addition are two, biases and masks are not counted, nor
 * are groups of a convolution's gradient. torch has no formula for the attention of CPUs; here it
 * has that of the other kinds.
 */
#include <string.h>

#include "ops.h"

enum formula {
	FORMULA_NONE,
	FORMULA_MM,
	FORMULA_ADDMM,
	FORMULA_BMM,
	FORMULA_BADDBMM,
	FORMULA_LINEAR,
	FORMULA_CONVOLUTION,
	FORMULA_CONVOLUTION_BACKWARD,
	FORMULA_ATTENTION,
	FORMULA_ATTENTION_BACKWARD,
	FORMULA_RAGGED, /* attention whose fourth input may be offsets of sequences */
};

static const struct {
	const char *name;
	enum formula formula;
} op_formulas[] = {
	{ "aten::mm", FORMULA_MM },
	{ "aten::_scaled_mm", FORMULA_MM },
	{ "aten::addmm", FORMULA_ADDMM },
	{ "aten::bmm", FORMULA_BMM },
	{ "aten::baddbmm", FORMULA_BADDBMM },
	{ "mkldnn::_linear_pointwise", FORMULA_LINEAR },
	{ "aten::convolution", FORMULA_CONVOLUTION },
	{ "aten::_convolution", FORMULA_CONVOLUTION },
	{ "aten::convolution_overrideable", FORMULA_CONVOLUTION },
	{ "aten::convolution_backward", FORMULA_CONVOLUTION_BACKWARD },
	{ "aten::_scaled_dot_product_flash_attention_for_cpu", FORMULA_ATTENTION },
	{ "aten::_scaled_dot_product_efficient_attention", FORMULA_ATTENTION },
	{ "aten::_scaled_dot_product_flash_attention", FORMULA_ATTENTION },
	{ "aten::_scaled_dot_product_cudnn_attention", FORMULA_ATTENTION },
	{ "aten::_flash_attention_forward", FORMULA_RAGGED },
	{ "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
	  FORMULA_ATTENTION_BACKWARD },
	{ "aten::_scaled_dot_product_efficient_attention_backward", FORMULA_ATTENTION_BACKWARD },
	{ "aten::_scaled_dot_product_flash_attention_backward", FORMULA_ATTENTION_BACKWARD },
	{ "aten::_scaled_dot_product_cudnn_attention_backward", FORMULA_ATTENTION_BACKWARD },
};

int op_flops_formula(const char *name)
{
	for (size_t i = 0; i < sizeof(op_formulas) / sizeof(op_formulas[0]); i++)
		if (!strcmp(op_formulas[i].name, name))
			return (int)op_formulas[i].formula;
	return FORMULA_NONE;
}

/* ---- numbers ---- */

/* The product so far; false: too large, or a size below 0. */
static bool op_times(uint64_t *product, int64_t size)
{
	return size >= 0 && !__builtin_mul_overflow(*product, (uint64_t)size, product);
}

static bool op_times_all(uint64_t *product, const int64_t *sizes, int from, int to)
{
	for (int i = from; i < to; i++)
		if (!op_times(product, sizes[i]))
			return false;
	return true;
}

struct shape {
	const int64_t *sizes;
	int dims; /* -1: not a tensor */
};

static struct shape shape_of(const struct op_inputs *inputs, uint64_t at)
{
	struct shape shape = { NULL, -1 };
	uint32_t dtype;

	if (at < inputs->count)
		shape.dims = op_tensor(&inputs->values[at], &shape.sizes, &dtype);
	return shape;
}

/* ---- products of matrices ---- */

/* Of the last two dimensions of a and b; of `batches` many. */
static bool product(const struct op_inputs *inputs, uint64_t at, int batches, uint64_t *out)
{
	struct shape a = shape_of(inputs, at), b = shape_of(inputs, at + 1);

	*out = 2;
	return a.dims == batches + 2 && b.dims == batches + 2 &&
	       op_times_all(out, a.sizes, 0, a.dims) && op_times(out, b.sizes[b.dims - 1]);
}

/* The weight is (out, in). */
static bool linear(const struct op_inputs *inputs, uint64_t *out)
{
	struct shape x = shape_of(inputs, 0), weight = shape_of(inputs, 1);

	*out = 2;
	return x.dims > 0 && weight.dims == 2 && op_times_all(out, x.sizes, 0, x.dims) &&
	       op_times(out, weight.sizes[0]);
}

/* ---- convolutions ---- */

static bool is_true_at(const struct op_inputs *inputs, uint64_t at, bool *out)
{
	if (at >= inputs->count || inputs->values[at].tag != op_layout.bool_tag)
		return false;
	*out = inputs->values[at].payload & 0xff;
	return true;
}

/* The number at that place; a list of one stands for all dimensions. */
static bool number_in(const struct op_inputs *inputs, uint64_t at, int place, int64_t *out)
{
	const struct op_value *first;
	size_t count = at < inputs->count ? op_list(&inputs->values[at], &first) : 0;

	if (!count || ((size_t)place >= count && count > 1))
		return false;
	first += count > 1 ? place : 0;
	*out = (int64_t)first->payload;
	return first->tag == op_layout.int_tag;
}

/* Places of the filter in one dimension of the input. */
static bool output_size(const struct op_inputs *inputs, int dim, int64_t size, int64_t filter,
			int64_t *out)
{
	int64_t stride, padding, dilation, room;

	if (!number_in(inputs, 3, dim, &stride) || !number_in(inputs, 4, dim, &padding) ||
	    !number_in(inputs, 5, dim, &dilation) || stride < 1 || size < 0 || filter < 0 ||
	    (uint64_t)size >> 40 || (uint64_t)filter >> 20 || (uint64_t)padding >> 40 ||
	    (uint64_t)dilation >> 20)
		return false;
	room = size + 2 * padding - dilation * (filter - 1) - 1;
	*out = room < 0 ? 0 : room / stride + 1;
	return true;
}

/* Without a batch, an input has one dimension less; torch adds it before it calls convolution. */
static bool convolution(const struct op_inputs *inputs, uint64_t *out)
{
	struct shape x = shape_of(inputs, 0), weight = shape_of(inputs, 1);
	bool transposed;

	*out = 2;
	if (x.dims < 3 || weight.dims != x.dims || !is_true_at(inputs, 6, &transposed) ||
	    !op_times(out, x.sizes[0]) || !op_times_all(out, weight.sizes, 0, weight.dims))
		return false;
	if (transposed)
		return op_times_all(out, x.sizes, 2, x.dims);
	for (int i = 2; i < x.dims; i++) {
		int64_t size;

		if (!output_size(inputs, i - 2, x.sizes[i], weight.sizes[i], &size) ||
		    !op_times(out, size))
			return false;
	}
	return true;
}

static bool mask_at(const struct op_inputs *inputs, size_t place, bool *out)
{
	const struct op_value *first;
	size_t count = inputs->count > 10 ? op_list(&inputs->values[10], &first) : 0;

	if (count != 3 || first[place].tag != op_layout.bool_tag)
		return false;
	*out = first[place].payload & 0xff;
	return true;
}

static bool convolution_backward(const struct op_inputs *inputs, uint64_t *out)
{
	struct shape grad = shape_of(inputs, 0), x = shape_of(inputs, 1),
		     weight = shape_of(inputs, 2);
	bool transposed, of_input, of_weight, fits;
	const struct shape *batch;
	uint64_t part = 2;

	*out = 0;
	if (grad.dims < 3 || x.dims != grad.dims || weight.dims != grad.dims ||
	    !is_true_at(inputs, 7, &transposed) || !mask_at(inputs, 0, &of_input) ||
	    !mask_at(inputs, 1, &of_weight))
		return false;
	/* As convolution(grad, weight), transposed the other way round. */
	fits = op_times(&part, grad.sizes[0]) &&
	       op_times_all(&part, weight.sizes, 0, weight.dims) &&
	       op_times_all(&part, transposed ? x.sizes : grad.sizes, 2, grad.dims);
	if (fits && of_input)
		*out = part;
	/* As convolution(x, grad), or (grad, x), with batches and channels exchanged. */
	part = 2;
	batch = transposed ? &grad : &x;
	fits = fits && op_times(&part, batch->sizes[1]) &&
	       op_times_all(&part, weight.sizes, 2, weight.dims) &&
	       op_times_all(&part, transposed ? x.sizes : grad.sizes, 0, grad.dims);
	return fits && (!of_weight || !__builtin_add_overflow(*out, part, out));
}

/* ---- attention ---- */

/* 2 b h, of the query; and sizes of sequences and heads. */
struct attention {
	uint64_t heads;
	int64_t queries, keys, width, value_width;
};

static bool attention_of(const struct op_inputs *inputs, uint64_t at, struct attention *out)
{
	struct shape query = shape_of(inputs, at), key = shape_of(inputs, at + 1),
		     value = shape_of(inputs, at + 2);

	if (query.dims != 4 || key.dims != 4 || value.dims != 4)
		return false;
	*out = (struct attention){ 2, query.sizes[2], key.sizes[2], query.sizes[3],
				   value.sizes[3] };
	return op_times_all(&out->heads, query.sizes, 0, 2);
}

/* Products of the scores' size with each of two widths. */
static bool scores(const struct attention *of, int widths, int value_widths, uint64_t *out)
{
	uint64_t all = of->heads, width = 0;

	if (!op_times(&all, of->queries) || !op_times(&all, of->keys) ||
	    (uint64_t)of->width >> 32 || (uint64_t)of->value_width >> 32)
		return false;
	width = (uint64_t)widths * (uint64_t)of->width +
		(uint64_t)value_widths * (uint64_t)of->value_width;
	return !__builtin_mul_overflow(all, width, out);
}

static bool attention(const struct op_inputs *inputs, uint64_t *out)
{
	struct attention of;

	return attention_of(inputs, 0, &of) && scores(&of, 1, 1, out);
}

/* Scores again, gradients of scores and values; of queries and keys. */
static bool attention_backward(const struct op_inputs *inputs, uint64_t *out)
{
	struct attention of;

	return attention_of(inputs, 1, &of) && scores(&of, 3, 2, out);
}

bool op_flops(int formula, const struct op_inputs *inputs, uint64_t *out)
{
	*out = 0;
	switch ((enum formula)formula) {
	case FORMULA_MM: return product(inputs, 0, 0, out);
	case FORMULA_ADDMM: return product(inputs, 1, 0, out);
	case FORMULA_BMM: return product(inputs, 0, 1, out);
	case FORMULA_BADDBMM: return product(inputs, 1, 1, out);
	case FORMULA_LINEAR: return linear(inputs, out);
	case FORMULA_CONVOLUTION: return convolution(inputs, out);
	case FORMULA_CONVOLUTION_BACKWARD: return convolution_backward(inputs, out);
	case FORMULA_ATTENTION: return attention(inputs, out);
	case FORMULA_ATTENTION_BACKWARD: return attention_backward(inputs, out);
	case FORMULA_RAGGED:
		return inputs->count > 3 && !inputs->values[3].tag && attention(inputs, out);
	default: return false;
	}
}
