#define PY_SSIZE_T_CLEAN
#include "convert.h"

static PyObject *from_text(struct ArrowStringView text)
{
	return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size_bytes, "replace");
}

static PyObject *from_bytes(struct ArrowBufferView bytes)
{
	return PyBytes_FromStringAndSize(bytes.data.as_char, (Py_ssize_t)bytes.size_bytes);
}

static PyObject *from_special(const struct convert *convert, const char *kind, PyObject *value,
			      const char *unit)
{
	PyObject *made = value ? PyObject_CallFunction(convert->special, "sOs", kind, value, unit)
			       : NULL;

	Py_XDECREF(value);
	return made;
}

/* Sums of integers are decimals without a fraction, too: they become ints. */
static PyObject *from_decimal(const struct convert *convert, const struct ArrowSchemaView *type,
			      const struct ArrowArrayView *view, int64_t row)
{
	struct ArrowDecimal decimal;
	struct ArrowBuffer text;
	PyObject *value = NULL;

	ArrowDecimalInit(&decimal, type->decimal_bitwidth, type->decimal_precision,
			 type->decimal_scale);
	ArrowArrayViewGetDecimalUnsafe(view, row, &decimal);
	ArrowBufferInit(&text);
	if (ArrowDecimalAppendStringToBuffer(&decimal, &text) ||
	    ArrowBufferAppendInt8(&text, 0)) /* terminating NUL */
		PyErr_NoMemory();
	else if (!type->decimal_scale)
		value = PyLong_FromString((const char *)text.data, NULL, 10);
	else
		value = from_special(convert, "decimal",
				     PyUnicode_FromString((const char *)text.data), "");
	ArrowBufferReset(&text);
	return value;
}

static PyObject *from_items(const struct convert *convert, const struct ArrowSchema *schema,
			    const struct ArrowArrayView *view, int64_t first, int64_t end)
{
	PyObject *list = PyList_New(0);

	for (int64_t i = first; list && i < end; i++) {
		PyObject *item = convert_value(convert, schema->children[0], view->children[0], i);

		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

static PyObject *from_struct(const struct convert *convert, const struct ArrowSchema *schema,
			     const struct ArrowArrayView *view, int64_t row)
{
	PyObject *dict = PyDict_New();

	for (int64_t i = 0; dict && i < view->n_children; i++) {
		PyObject *value = convert_value(convert, schema->children[i], view->children[i],
						row + view->offset);

		if (!value || PyDict_SetItemString(dict, schema->children[i]->name, value))
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	return dict;
}

static const char *unit_of(const struct ArrowSchemaView *type)
{
	static const char *const units[] = {
		[NANOARROW_TIME_UNIT_SECOND] = "s",
		[NANOARROW_TIME_UNIT_MILLI] = "ms",
		[NANOARROW_TIME_UNIT_MICRO] = "us",
		[NANOARROW_TIME_UNIT_NANO] = "ns",
	};

	return units[type->time_unit];
}

static PyObject *from_time(const struct convert *convert, const struct ArrowSchemaView *type,
			   const struct ArrowArrayView *view, int64_t row)
{
	PyObject *value = PyLong_FromLongLong(ArrowArrayViewGetIntUnsafe(view, row));

	switch (type->type) {
	case NANOARROW_TYPE_DATE32: return from_special(convert, "date", value, "");
	case NANOARROW_TYPE_TIMESTAMP:
		return from_special(convert,
				    type->timezone && *type->timezone ? "instant" : "timestamp",
				    value, unit_of(type));
	case NANOARROW_TYPE_DURATION:
		return from_special(convert, "duration", value, unit_of(type));
	default: return from_special(convert, "time", value, unit_of(type));
	}
}

static PyObject *convert_from_list(const struct convert *convert,
				   const struct ArrowSchemaView *type,
				   const struct ArrowSchema *schema,
				   const struct ArrowArrayView *view, int64_t row)
{
	int64_t at = row + view->offset;

	if (type->type == NANOARROW_TYPE_FIXED_SIZE_LIST)
		return from_items(convert, schema, view, at * type->fixed_size,
				  (at + 1) * type->fixed_size);
	return from_items(convert, schema, view, ArrowArrayViewListChildOffset(view, at),
			  ArrowArrayViewListChildOffset(view, at + 1));
}

static PyObject *from_number(const struct ArrowSchemaView *type, const struct ArrowArrayView *view,
			     int64_t row)
{
	switch (type->type) {
	case NANOARROW_TYPE_BOOL:
		return PyBool_FromLong((long)ArrowArrayViewGetIntUnsafe(view, row));
	case NANOARROW_TYPE_UINT64:
		return PyLong_FromUnsignedLongLong(ArrowArrayViewGetUIntUnsafe(view, row));
	case NANOARROW_TYPE_HALF_FLOAT:
	case NANOARROW_TYPE_FLOAT:
	case NANOARROW_TYPE_DOUBLE:
		return PyFloat_FromDouble(ArrowArrayViewGetDoubleUnsafe(view, row));
	default: return PyLong_FromLongLong(ArrowArrayViewGetIntUnsafe(view, row));
	}
}

static PyObject *from_type(const struct convert *convert, const struct ArrowSchemaView *type,
			   const struct ArrowSchema *schema, const struct ArrowArrayView *view,
			   int64_t row)
{
	switch (type->type) {
	case NANOARROW_TYPE_BOOL:
	case NANOARROW_TYPE_INT8:
	case NANOARROW_TYPE_UINT8:
	case NANOARROW_TYPE_INT16:
	case NANOARROW_TYPE_UINT16:
	case NANOARROW_TYPE_INT32:
	case NANOARROW_TYPE_UINT32:
	case NANOARROW_TYPE_INT64:
	case NANOARROW_TYPE_UINT64:
	case NANOARROW_TYPE_HALF_FLOAT:
	case NANOARROW_TYPE_FLOAT:
	case NANOARROW_TYPE_DOUBLE: return from_number(type, view, row);
	case NANOARROW_TYPE_STRING:
	case NANOARROW_TYPE_LARGE_STRING:
	case NANOARROW_TYPE_STRING_VIEW: return from_text(ArrowArrayViewGetStringUnsafe(view, row));
	case NANOARROW_TYPE_BINARY:
	case NANOARROW_TYPE_LARGE_BINARY:
	case NANOARROW_TYPE_BINARY_VIEW:
	case NANOARROW_TYPE_FIXED_SIZE_BINARY:
		return from_bytes(ArrowArrayViewGetBytesUnsafe(view, row));
	case NANOARROW_TYPE_DECIMAL32:
	case NANOARROW_TYPE_DECIMAL64:
	case NANOARROW_TYPE_DECIMAL128:
	case NANOARROW_TYPE_DECIMAL256: return from_decimal(convert, type, view, row);
	case NANOARROW_TYPE_DATE32:
	case NANOARROW_TYPE_TIMESTAMP:
	case NANOARROW_TYPE_DURATION:
	case NANOARROW_TYPE_TIME32:
	case NANOARROW_TYPE_TIME64: return from_time(convert, type, view, row);
	case NANOARROW_TYPE_STRUCT: return from_struct(convert, schema, view, row);
	case NANOARROW_TYPE_LIST:
	case NANOARROW_TYPE_LARGE_LIST:
	case NANOARROW_TYPE_MAP:
	case NANOARROW_TYPE_FIXED_SIZE_LIST:
		return convert_from_list(convert, type, schema, view, row);
	default:
		return PyErr_Format(
			PyExc_ValueError,
			"column %s has the Arrow type %s, which has no Python equivalent; cast it "
			"to VARCHAR, or read the result with pyarrow",
			schema->name ? schema->name : "", schema->format);
	}
}

PyObject *convert_value(const struct convert *convert, const struct ArrowSchema *schema,
			const struct ArrowArrayView *view, int64_t row)
{
	struct ArrowSchemaView type;
	struct ArrowError why = { 0 };

	if (ArrowSchemaViewInit(&type, schema, &why))
		return PyErr_Format(PyExc_ValueError, "%s", why.message);
	if (type.type == NANOARROW_TYPE_NA || ArrowArrayViewIsNull(view, row))
		Py_RETURN_NONE;
	return from_type(convert, &type, schema, view, row);
}
