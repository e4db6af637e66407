/*
 * Operators of torch: torch.ops. A callback of at::RecordFunction for functions, enabled in windows
 * of whole steps.
 *
 *	ops.c         the callback, windows, rows        op_names.c   names and shapes
 *	op_inputs.c   inputs of an operator, and where they are    op_flops.c   formulas
 */
#ifndef KYMO_PYTHON_TORCH_OPS_H
#define KYMO_PYTHON_TORCH_OPS_H

#include "torch.h"

/* c10::IValue */
struct op_value {
	uint64_t payload;
	uint32_t tag;
	uint32_t rest;
};
#define OP_TENSOR_TAG 1u /* in all versions */

/* Where things are in objects of torch, in bytes. */
struct op_layout {
	uint32_t inputs; /* in at::RecordFunction: a pointer to values, and their number */
	/* in c10::TensorImpl: the number of dimensions, then five sizes, or a pointer to them */
	uint32_t dims;
	uint32_t dtype;
	uint32_t list; /* in c10::detail::ListImpl: the first value, the end */
	uint32_t list_tag, int_tag, bool_tag;
};
extern struct op_layout op_layout;
extern bool op_layout_known;

struct op_inputs {
	const struct op_value *values;
	uint64_t count;
};

#define OP_DIMS_MOST 8

/* ---- op_inputs.c: no function of torch is called, since for a tensor of a class of the program's
   these would call Python ---- */

struct op_inputs op_inputs_of(const void *function);
/* The number of dimensions; -1: not a tensor, or more than OP_DIMS_MOST. *out_sizes stays valid as
   long as the tensor. */
int op_tensor(const struct op_value *value, const int64_t **out_sizes, uint32_t *out_dtype);
/* The values of a list; 0: not a list, or empty. */
size_t op_list(const struct op_value *value, const struct op_value **out_first);

/* Finds the layout from operators with known inputs. search: also the place of the inputs, by
   reading what may be no pointer; only in a process that may crash. */
void op_inputs_begin(bool search);
void op_inputs_see(const void *function, const char *name);
/* NULL, or a sentence about what does not fit. */
const char *op_inputs_end(void);

/* ---- op_flops.c ---- */

/* The number of the operator's formula; 0: none. */
int op_flops_formula(const char *name);
/* False: these inputs do not fit the formula. */
bool op_flops(int formula, const struct op_inputs *inputs, uint64_t *out_flops);

/* ---- op_names.c ---- */

struct op_name {
	uint64_t hash;
	uint32_t id; /* of the recording, source op; 0: an empty place */
	uint8_t formula;
	uint8_t bytes;
	bool skipped; /* not recorded: a frame around another operator */
	char text[64];
};

struct op_shape {
	uint64_t hash; /* 0: an empty place */
	uint64_t flops;
	uint32_t shapes, dtypes; /* names */
	bool counted;
};

#define OP_NAMES 256
#define OP_SHAPES 1024
#define OPS_MOST 64 /* operators inside each other; deeper ones are not recorded */

struct op_open {
	const void *function;
	struct kymo_zone zone;
	const struct entry *entry;
	int64_t sequence;
	uint64_t flops;
	uint32_t name, shapes, dtypes, step, flags, stage;
	bool counted; /* it, or an operator around it */
};

/* Of a thread that runs operators. */
struct op_thread {
	int count;
	uint32_t window; /* in which the operators were opened */
	struct op_open open[OPS_MOST];
	struct op_name names[OP_NAMES];
	struct op_shape shapes[OP_SHAPES];
};

const struct op_name *op_name_of(struct op_thread *ops, const char *name);
const struct op_shape *op_shape_of(struct op_thread *ops, const struct op_name *name,
				   const struct op_inputs *inputs);

/* ---- ops.c ---- */

/* Makes the callback known to torch, disabled. The layout must be known. */
void ops_add(void);
/* While true, the callback only looks for the layout. */
void ops_look_for_layout(bool on);
/* Recording is turned off. */
void ops_close(void);
bool ops_are_on(void);
/* For kymo.overhead: calls act(), which runs `count` operators, with and without the callback. */
void ops_cost(PyObject *act, uint32_t count);
uint64_t ops_rows(void); /* written so far; for tests */

#endif
