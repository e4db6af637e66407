/* Names, once per code object: kept in co_extra, so they are freed with it, and a new code object
   at the same address has none. If our indexes are not the first ones, codetable.c keeps them. */
#include "trace.h"

#include <stdlib.h>

#include "../core/text.h"

#if PY_VERSION_HEX >= 0x030C0000
#define request_index PyUnstable_Eval_RequestCodeExtraIndex
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_index _PyEval_RequestCodeExtraIndex
#define set_extra _PyCode_SetExtra
#endif

/* Line names of a code object, by line; malloc'd, freed with it. */
struct lines {
	int first, count;
	uint32_t ids[];
};
#define LINES_MAX 100000

Py_ssize_t codes_index = -1;
static PyObject *our_folder; /* str, ends with a slash */
static PyObject *our_frozen;

/* Names of functions of C, by address of their method. Not a dict: a lookup there makes an int,
   which tracemalloc would count. */
#define C_NAMES 65536u /* a power of two; filled to a half */

static struct c_name {
	const PyMethodDef *method;
	uint32_t id;
} * c_names;
static unsigned c_names_used;

/* ---- setting up -------------------------------------------------------------------------- */

static PyObject *folder_of(PyObject *module)
{
	PyObject *file = PyModule_GetFilenameObject(module);
	Py_ssize_t slash = file ? PyUnicode_FindChar(file, '/', 0, PyUnicode_GET_LENGTH(file), -1)
				: -1;
	PyObject *folder = slash >= 0 ? PyUnicode_Substring(file, 0, slash + 1) : NULL;

	Py_XDECREF(file);
	PyErr_Clear();
	return folder;
}

#if PY_VERSION_HEX < 0x030B0000
static void free_name(void *name)
{
	if (Py_IsInitialized())
		Py_XDECREF((PyObject *)name);
}
#endif

static const freefunc item_frees[CODE_ITEMS] = {
	[CODE_LINES] = free,
#if PY_VERSION_HEX < 0x030B0000
	[CODE_NAME] = free_name,
#endif
};

void codes_free_item(enum code_item item, void *value)
{
	if (item_frees[item])
		item_frees[item](value);
}

/* True if our indexes are the first ones of this interpreter. */
static bool request_indexes(void)
{
	bool are_first = true;

	for (int item = 0; item < CODE_ITEMS; item++)
		are_first = request_index(item_frees[item]) == item && are_first;
	return are_first;
}

/* Checks that co_extra is laid out as struct code_extra. */
static int check_layout(void)
{
	PyCodeObject *code = PyCode_NewEmpty("kymo", "kymo", 1);
	const struct code_extra *extra;
	int known = 0;

	if (!code)
		return -1;
	if (!set_extra((PyObject *)code, CODE_TAG, (void *)(uintptr_t)257)) {
		extra = code->co_extra;
		known = extra && extra->size > CODE_LINES &&
			extra->items[CODE_TAG] == (void *)(uintptr_t)257;
	}
	Py_DECREF(code);
	return known ? 0 : -1;
}

int codes_init(PyObject *module)
{
	bool are_first;

	if (codes_index >= 0)
		return 0;
	our_folder = folder_of(module);
	our_frozen = PyUnicode_FromString("<frozen kymo.");
	c_names = c_names ? c_names : calloc(C_NAMES, sizeof(struct c_name));
	if (!c_names || !our_frozen)
		return -1;
	are_first = request_indexes();
	if (are_first && check_layout()) {
		PyErr_Clear();
		return -1;
	}
	codes_index = are_first ? CODE_TAG : CODES_ELSEWHERE;
	return 0;
}

/* ---- what a code object has -------------------------------------------------------------- */

/* CPython makes a new co_extra as large as there are indexes, and calls the free function of each
   when the code object ends. One of our size calls only ours; a later user's set_extra() enlarges
   it. */
static int set_extra_of_our_size(PyCodeObject *code, enum code_item item, void *value)
{
	bool is_new = !code->co_extra;
	struct code_extra *extra;

	if (set_extra((PyObject *)code, item, value))
		return -1;
	extra = code->co_extra;
	if (is_new && extra->size > CODE_ITEMS)
		extra->size = CODE_ITEMS;
	return 0;
}

void *codes_item(PyCodeObject *code, enum code_item item)
{
	const struct code_extra *extra = code->co_extra;
	const struct code_entry *entry;

	if (KYMO__LIKELY(codes_index != CODES_ELSEWHERE))
		return extra && extra->size > (Py_ssize_t)item ? extra->items[item] : NULL;
	entry = codetable_find(code);
	return entry ? entry->items[item] : NULL;
}

int codes_set_item(PyCodeObject *code, enum code_item item, void *value)
{
	struct code_entry *entry;
	void *old;

	if (codes_index != CODES_ELSEWHERE)
		return set_extra_of_our_size(code, item, value);
	entry = codetable_at(code);
	if (!entry)
		return -1;
	old = entry->items[item];
	entry->items[item] = value;
	codes_free_item(item, old);
	return 0;
}

/* ---- functions --------------------------------------------------------------------------- */

static uint32_t codes_intern(PyObject *name, PyObject *file, int line, enum kymo_source source)
{
	struct text name_text = { 0 }, file_text = { 0 };
	uint32_t id = 0;

	if (!text_take(name, &name_text) && (!file || !text_take(file, &file_text)))
		id = kymo_name_full(name_text.bytes, (size_t)name_text.size, file_text.bytes,
				    (size_t)file_text.size, line > 0 ? (uint32_t)line : 0, source,
				    0);
	text_release(&name_text);
	text_release(&file_text);
	return id;
}

static PyObject *qualified_name(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
	return code->co_qualname;
#else
	return qualname_of(code);
#endif
}

/* _auto.py and _torch_auto.py change their file names. */
static bool is_ours(PyObject *file)
{
	return (our_folder && PyUnicode_Tailmatch(file, our_folder, 0, PY_SSIZE_T_MAX, -1) == 1) ||
	       PyUnicode_Tailmatch(file, our_frozen, 0, PY_SSIZE_T_MAX, -1) == 1;
}

static tag_t flags_of(PyCodeObject *code)
{
	tag_t tag = TAG_KNOWN;

	if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
		tag |= TAG_RESUMES;
	if (code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE))
		tag |= TAG_COROUTINE;
	if (is_ours(code->co_filename))
		tag |= TAG_OURS;
	return tag;
}

tag_t codes_resolve(PyCodeObject *code)
{
	struct error_kept kept;
	tag_t tag = (tag_t)codes_item(code, CODE_TAG);

	if (tag)
		return tag;
	kept = error_keep();
	tag = flags_of(code);
	tag |= (tag_t)codes_intern(qualified_name(code), code->co_filename, code->co_firstlineno,
				   KYMO_SOURCE_PYTHON)
	       << 8;
	/* Without recording there is no id, but there may be one later. */
	if (kymo_enabled())
		codes_set_item(code, CODE_TAG, (void *)tag);
	error_back(kept);
	return tag;
}

/* ---- lines ------------------------------------------------------------------------------- */

static uint32_t line_id(PyCodeObject *code, int line)
{
	PyObject *name = PyUnicode_FromFormat("%U:%d", qualified_name(code), line);
	uint32_t id = name ? codes_intern(name, code->co_filename, line, KYMO_SOURCE_LINE) : 0;

	Py_XDECREF(name);
	return id;
}

/* A table for lines up to that one, with the entries of the previous table. */
static struct lines *lines_for(PyCodeObject *code, int line)
{
	struct lines *lines, *known = codes_item(code, CODE_LINES);
	int count = line - code->co_firstlineno + 1;

	if (known && count <= known->count)
		return known;
	if (count < 1 || count > LINES_MAX)
		return NULL;
	count += count / 2 + 16;
	lines = calloc(1, sizeof(*lines) + (size_t)count * sizeof(lines->ids[0]));
	if (!lines)
		return NULL;
	lines->first = code->co_firstlineno;
	lines->count = count;
	if (known)
		memcpy(lines->ids, known->ids, (size_t)known->count * sizeof(known->ids[0]));
	if (codes_set_item(code, CODE_LINES, lines)) { /* otherwise frees the old one */
		free(lines);
		return NULL;
	}
	return lines;
}

uint32_t codes_line(PyCodeObject *code, int line)
{
	struct lines *lines = codes_item(code, CODE_LINES);
	struct error_kept kept;
	uint32_t id;

	if (KYMO__LIKELY(lines && line >= lines->first && line - lines->first < lines->count &&
			 lines->ids[line - lines->first]))
		return lines->ids[line - lines->first];
	kept = error_keep();
	id = line_id(code, line);
	lines = lines_for(code, line);
	if (lines)
		lines->ids[line - lines->first] = id;
	error_back(kept);
	return id;
}

/* ---- functions of C ---------------------------------------------------------------------- */

PyMethodDef *codes_c_method(PyObject *callable)
{
	if (PyCFunction_Check(callable))
		return ((PyCFunctionObject *)callable)->m_ml;
	if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
		return ((PyMethodDescrObject *)callable)->d_method;
	return NULL;
}

/* time.sleep, len, list.append: the module is omitted if the name is clear without it. */
static PyObject *c_name(PyObject *callable)
{
	PyObject *name = PyObject_GetAttrString(callable, "__qualname__");
	PyObject *module = NULL, *full = NULL;

	if (PyCFunction_Check(callable))
		module = PyObject_GetAttrString(callable, "__module__");
	PyErr_Clear();
	if (name && module && PyUnicode_Check(module) && PyUnicode_Check(name) &&
	    PyUnicode_CompareWithASCIIString(module, "builtins"))
		full = PyUnicode_FromFormat("%U.%U", module, name);
	Py_XDECREF(module);
	if (!full)
		return name;
	Py_DECREF(name);
	return full;
}

/* The entry of the method, or the free one for it. */
static struct c_name *c_name_at(const PyMethodDef *method)
{
	size_t at = ((uintptr_t)method >> 3) * 0x9E3779B97F4A7C15u >> 40;

	while (c_names[at % C_NAMES].method && c_names[at % C_NAMES].method != method)
		at++;
	return &c_names[at % C_NAMES];
}

static uint32_t c_resolve(PyObject *callable, const PyMethodDef *method)
{
	struct error_kept kept = error_keep();
	PyObject *name = c_name(callable);
	uint32_t id = name && PyUnicode_Check(name) ? codes_intern(name, NULL, 0, KYMO_SOURCE_C)
						    : 0;

	if (id && c_names_used < C_NAMES / 2) {
		struct c_name *entry = c_name_at(method);

		c_names_used += !entry->method;
		entry->method = method;
		entry->id = id;
	}
	Py_XDECREF(name);
	error_back(kept);
	return id;
}

uint32_t codes_c_function(PyObject *callable)
{
	const PyMethodDef *method = codes_c_method(callable);
	const struct c_name *entry = method ? c_name_at(method) : NULL;

	if (!entry)
		return 0;
	return KYMO__LIKELY(entry->method != NULL) ? entry->id : c_resolve(callable, method);
}
