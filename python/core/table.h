/* Part of _kymo.c: tables that the program declares. */
#ifndef KYMO_PYTHON_TABLE_H
#define KYMO_PYTHON_TABLE_H

#include "rows.h"

#define TABLE_ROW_MAX 1024
#define TABLE_COLUMNS_MAX 32

struct field;

struct field_kind {
	const char *word; /* the Python name */
	enum kymo_type type;
	size_t bytes; /* 0: given by the declaration */
	size_t align;
	/* Fills the field; -1 and an exception. NULL: filled in here, not an argument. */
	int (*put)(const struct field *field, PyObject *value, char *out);
};

struct field {
	const struct field_kind *kind;
	PyObject *name; /* interned */
	size_t offset;
	size_t bytes;
};

struct table {
	PyObject_HEAD struct kymo_table *table; /* NULL: could not be created; rows are discarded */
	PyObject *name;
	size_t row_bytes;
	int count;
	int given; /* fields that are arguments */
	struct field fields[TABLE_COLUMNS_MAX];
};

static int put_wrong(const struct field *field, PyObject *value)
{
	PyErr_Format(PyExc_TypeError, "column %U takes %s, not %.100s", field->name,
		     field->kind->word, Py_TYPE(value)->tp_name);
	return -1;
}

/* Values that do not fit 64 bits are clamped. */
static int table_put_int(const struct field *field, PyObject *value, char *out)
{
	PyObject *number = PyIndex_Check(value) ? PyNumber_Index(value) : NULL;
	long long wide;
	int64_t kept;
	int overflow;

	if (!number)
		return PyErr_Occurred() ? -1 : put_wrong(field, value);
	wide = PyLong_AsLongLongAndOverflow(number, &overflow);
	Py_DECREF(number);
	kept = overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : wide;
	memcpy(out, &kept, sizeof(kept));
	return 0;
}

static int put_float(const struct field *field, PyObject *value, char *out)
{
	double real;

	if (!rows_is_number(value))
		return put_wrong(field, value);
	if (rows_take_double(value, &real))
		return -1;
	memcpy(out, &real, sizeof(real));
	return 0;
}

static int put_bool(const struct field *field, PyObject *value, char *out)
{
	int truth = PyObject_IsTrue(value);

	(void)field;
	if (truth < 0)
		return -1;
	*out = (char)truth;
	return 0;
}

static int put_text(const struct field *field, PyObject *value, char *out)
{
	struct text text;

	if (!PyUnicode_Check(value))
		return put_wrong(field, value);
	if (text_take(value, &text))
		return -1;
	memcpy(out, text.bytes,
	       arguments_text_fit(&text, field->bytes)); /* the rest is already zero */
	text_release(&text);
	return 0;
}

static const struct field_kind field_kinds[] = {
	{ "int", KYMO_I64, 8, 8, table_put_int }, { "float", KYMO_F64, 8, 8, put_float },
	{ "bool", KYMO_BOOL, 1, 1, put_bool },	  { "str", KYMO_TEXT, 0, 1, put_text },
	{ "now", KYMO_TIME, 8, 8, NULL },
};

static const struct field_kind *field_kind_find(PyObject *word)
{
	for (size_t i = 0; i < sizeof(field_kinds) / sizeof(*field_kinds); i++)
		if (PyUnicode_CompareWithASCIIString(word, field_kinds[i].word) == 0)
			return &field_kinds[i];
	PyErr_Format(PyExc_TypeError, "unknown column type %U", word);
	return NULL;
}

/* One (name, kind, bytes) of the declaration. */
static int table_add(struct table *table, PyObject *declaration)
{
	struct field *field = &table->fields[table->count];
	PyObject *name, *word;
	Py_ssize_t bytes;

	if (!PyArg_ParseTuple(declaration, "UUn", &name, &word, &bytes))
		return -1;
	field->kind = field_kind_find(word);
	if (!field->kind)
		return -1;
	if (bytes < 0 || bytes > TABLE_ROW_MAX || (!field->kind->bytes && !bytes)) {
		PyErr_Format(PyExc_ValueError, "column %U: a text has 1 to %d bytes, not %zd", name,
			     TABLE_ROW_MAX, bytes);
		return -1;
	}
	Py_INCREF(name);
	PyUnicode_InternInPlace(&name);
	field->name = name;
	field->bytes = field->kind->bytes ? field->kind->bytes : (size_t)bytes;
	field->offset = (table->row_bytes + field->kind->align - 1) & ~(field->kind->align - 1);
	table->row_bytes = field->offset + field->bytes;
	table->given += field->kind->put != NULL;
	table->count++;
	return 0;
}

static int table_add_all(struct table *table, PyObject *declarations)
{
	Py_ssize_t count = PyTuple_GET_SIZE(declarations);

	if (count < 1 || count > TABLE_COLUMNS_MAX) {
		PyErr_Format(PyExc_ValueError, "table %U: a table has 1 to %d columns, not %zd",
			     table->name, TABLE_COLUMNS_MAX, count);
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++)
		if (table_add(table, PyTuple_GET_ITEM(declarations, i)))
			return -1;
	table->row_bytes = (table->row_bytes + 7) & ~(size_t)7;
	if (table->row_bytes <= TABLE_ROW_MAX)
		return 0;
	PyErr_Format(
		PyExc_ValueError,
		"table %U: a row has %zu bytes, more than the maximum of %d; shorten its texts",
		table->name, table->row_bytes, TABLE_ROW_MAX);
	return -1;
}

/* A bad declaration is the program's error and raises; any other failure gives a table that
   discards its rows. */
static int table_declare(struct table *table)
{
	struct kymo_column columns[TABLE_COLUMNS_MAX];
	const char *name = PyUnicode_AsUTF8(table->name);
	struct kymo_error err = { 0 };

	for (int i = 0; i < table->count; i++) {
		const struct field *field = &table->fields[i];
		const char *column = PyUnicode_AsUTF8(field->name);

		if (!column)
			return -1;
		columns[i] = (struct kymo_column){ column, field->kind->type, field->offset,
						   field->kind->bytes ? 0 : field->bytes, NULL };
	}
	if (!name)
		return -1;
	table->table = kymo_table_create(name, columns, (size_t)table->count, table->row_bytes,
					 &err);
	if (table->table || (err.code != EINVAL && err.code != EEXIST))
		return 0;
	PyErr_Format(PyExc_ValueError, "%s", err.text);
	return -1;
}

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	PyObject *name, *declarations;
	struct table *table;

	if (keywords && PyDict_GET_SIZE(keywords)) {
		PyErr_SetString(PyExc_TypeError, "kymo.Table takes no keywords; kymo.table() does");
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "UO!:Table", &name, &PyTuple_Type, &declarations))
		return NULL;
	table = (struct table *)type->tp_alloc(type, 0);
	if (!table)
		return NULL;
	Py_INCREF(name);
	table->name = name;
	if (table_add_all(table, declarations) || table_declare(table))
		Py_CLEAR(table);
	return (PyObject *)table;
}

static void table_dealloc(PyObject *self)
{
	struct table *table = (struct table *)self;
	PyTypeObject *type = Py_TYPE(self);

	for (int i = 0; i < table->count; i++)
		Py_CLEAR(table->fields[i].name);
	Py_CLEAR(table->name);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *table_repr(PyObject *self)
{
	return PyUnicode_FromFormat("<kymo.table %R>", ((struct table *)self)->name);
}

static int table_find(const struct table *table, PyObject *word)
{
	for (int i = 0; i < table->count; i++)
		if (table->fields[i].name == word)
			return i;
	for (int i = 0; i < table->count; i++)
		if (PyUnicode_Compare(table->fields[i].name, word) == 0)
			return i;
	if (!PyErr_Occurred())
		PyErr_Format(PyExc_TypeError, "table %U has no column %R", table->name, word);
	return -1;
}

static int table_put(const struct table *table, int at, PyObject *value, uint32_t *seen, char *row)
{
	const struct field *field = &table->fields[at];

	if (!field->kind->put) {
		PyErr_Format(PyExc_TypeError, "table %U: column %U is filled by kymo", table->name,
			     field->name);
		return -1;
	}
	if (*seen & 1u << at) {
		PyErr_Format(PyExc_TypeError, "table %U: column %U was given twice", table->name,
			     field->name);
		return -1;
	}
	*seen |= 1u << at;
	return field->kind->put(field, value, row + field->offset);
}

static int table_put_positional(const struct table *table, PyObject *const *args, Py_ssize_t count,
				uint32_t *seen, char *row)
{
	int at = 0;

	if (count > table->given) {
		PyErr_Format(PyExc_TypeError, "table %U takes %d values, got %zd", table->name,
			     table->given, count);
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++, at++) {
		while (!table->fields[at].kind->put)
			at++;
		if (table_put(table, at, args[i], seen, row))
			return -1;
	}
	return 0;
}

static int table_finish(const struct table *table, uint32_t seen, char *row)
{
	uint64_t now = kymo_ticks();

	for (int i = 0; i < table->count; i++) {
		const struct field *field = &table->fields[i];

		if (!field->kind->put) {
			memcpy(row + field->offset, &now, sizeof(now));
		} else if (!(seen & 1u << i)) {
			PyErr_Format(PyExc_TypeError, "table %U: column %U is missing", table->name,
				     field->name);
			return -1;
		}
	}
	return 0;
}

PyDoc_STRVAR(append_doc,
	     "append($self, /, *values, **columns)\n--\n\n"
	     "Adds a row, with values in the order of the declaration or by column name. "
	     "All columns\n"
	     "but those of type `kymo.now` are required.");

static PyObject *table_append(PyObject *self, PyObject *const *args, Py_ssize_t count,
			      PyObject *keywords)
{
	struct table *table = (struct table *)self;
	Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
	uint64_t room[TABLE_ROW_MAX / 8];
	char *row = (char *)room;
	uint32_t seen = 0;

	memset(row, 0, table->row_bytes);
	if (table_put_positional(table, args, count, &seen, row))
		return NULL;
	for (Py_ssize_t i = 0; i < named; i++) {
		int at = table_find(table, PyTuple_GET_ITEM(keywords, i));

		if (at < 0 || table_put(table, at, args[count + i], &seen, row))
			return NULL;
	}
	if (table_finish(table, seen, row))
		return NULL;
	if (kymo_enabled() && table->table) {
		region_ready_thread();
		kymo_table_append(table->table, row);
	}
	Py_RETURN_NONE;
}

static PyMethodDef table_methods[] = {
	{ "append", (PyCFunction)(void (*)(void))table_append, METH_FASTCALL | METH_KEYWORDS,
	  append_doc },
	{ NULL },
};

static PyMemberDef table_members[] = {
	{ "name", T_OBJECT_EX, offsetof(struct table, name), READONLY, "as in SQL" },
	{ NULL },
};

static PyType_Slot table_slots[] = {
	{ Py_tp_doc, "A table of your own. Create one with kymo.table()." },
	{ Py_tp_new, table_new },
	{ Py_tp_dealloc, table_dealloc },
	{ Py_tp_repr, table_repr },
	{ Py_tp_methods, table_methods },
	{ Py_tp_members, table_members },
	{ 0, NULL },
};

static PyType_Spec table_spec = {
	.name = "kymo.Table",
	.basicsize = sizeof(struct table),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = table_slots,
};

#endif
