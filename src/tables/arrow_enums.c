
#include "tables/arrow_enums.h"

static int forget_dictionary(struct ArrowSchema *schema)
{
	ArrowSchemaRelease(schema->dictionary);
	ArrowFree(schema->dictionary);
	schema->dictionary = NULL;
	return ArrowSchemaSetFormat(schema, "u");
}

static int make_plain(struct ArrowSchema *schema)
{
	int rc = schema->dictionary ? forget_dictionary(schema) : 0;

	for (int64_t i = 0; !rc && i < schema->n_children; i++)
		rc = make_plain(schema->children[i]);
	return rc;
}

int arrow_enums_plain_schema(const struct ArrowSchema *schema, struct ArrowSchema *out)
{
	int rc = ArrowSchemaDeepCopy(schema, out);

	return rc ? rc : make_plain(out);
}

static int append_all(const struct ArrowArrayView *view, struct ArrowArray *out)
{
	int rc = 0;

	for (int64_t i = 0; !rc && i < view->length; i++) {
		if (ArrowArrayViewIsNull(view, i))
			rc = ArrowArrayAppendNull(out, 1);
		else
			rc = ArrowArrayAppendString(
				out, ArrowArrayViewGetStringUnsafe(
					     view->dictionary,
					     (int64_t)ArrowArrayViewGetUIntUnsafe(view, i)));
	}
	return rc;
}

static int arrow_enums_write_out(const struct ArrowSchema *schema, struct ArrowArray *array,
				 struct ArrowError *why)
{
	struct ArrowArray plain = { .release = NULL };
	struct ArrowArrayView view;
	int rc = ArrowArrayViewInitFromSchema(&view, schema, why);

	if (!rc)
		rc = ArrowArrayViewSetArray(&view, array, why);
	if (!rc)
		rc = ArrowArrayInitFromType(&plain, NANOARROW_TYPE_STRING);
	if (!rc)
		rc = ArrowArrayStartAppending(&plain);
	if (!rc)
		rc = append_all(&view, &plain);
	if (!rc)
		rc = ArrowArrayFinishBuildingDefault(&plain, why);
	ArrowArrayViewReset(&view);
	if (!rc) {
		ArrowArrayRelease(array);
		ArrowArrayMove(&plain, array);
	} else if (plain.release) {
		ArrowArrayRelease(&plain);
	}
	return rc;
}

int arrow_enums_plain_array(const struct ArrowSchema *schema, struct ArrowArray *array,
			    struct ArrowError *why)
{
	int rc = 0;

	if (schema->dictionary)
		return arrow_enums_write_out(schema, array, why);
	for (int64_t i = 0; !rc && i < schema->n_children && i < array->n_children; i++)
		rc = arrow_enums_plain_array(schema->children[i], array->children[i], why);
	return rc;
}
