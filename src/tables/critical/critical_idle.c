/*
 * Idle time of devices on the critical path, by what the host did meanwhile.
 *
 * The path leaves the device when the host is what it waits for. A run of the path is what lies
 * between two operations on it. A wait in it is the cause if the operations before it took at least
 * half as long as the device was idle after it: queueing ahead would have hidden that much.
 */
#include "tables/critical/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* An interval in which a device is always busy, with the time that it was idle before. */
struct busy {
	int64_t start_ns, end_ns, idle_before_ns;
};

struct device {
	uint32_t process, name;
	CRITICAL_LIST(busy, busy);
};

/* A row of a run, before its cause is known. */
struct part {
	uint32_t row; /* of the path */
	uint32_t device;
	int64_t idle_ns;
};

struct idler {
	const struct critical_input *input;
	struct critical_result *result;
	CRITICAL_LIST(device, devices);
	uint32_t *device_of; /* queue -> devices */
	uint32_t *first_device, *next_device; /* of a process; after a device */
	uint8_t *is_data; /* by name: 0 not known, 1 no, 2 it loads data */
	/* The run that is read: */
	CRITICAL_LIST(part, parts);
	int64_t idle_ns, busy_ns;
	bool any_busy;
	uint32_t call; /* the row of its longest wait; CRITICAL_NONE */
};

/* ---- when devices are idle ------------------------------------------------------------------- */

static uint32_t idle_device(struct idler *idler, const struct critical_queue *queue)
{
	for (size_t i = idler->devices.count; i-- > 0;)
		if (idler->devices.list[i].process == queue->process &&
		    idler->devices.list[i].name == queue->device)
			return (uint32_t)i;
	if (!grow((void **)&idler->devices.list, &idler->devices.room, idler->devices.count,
		  sizeof(*idler->devices.list)))
		return CRITICAL_NONE;
	idler->devices.list[idler->devices.count] = (struct device){ .process = queue->process,
								     .name = queue->device };
	return (uint32_t)idler->devices.count++;
}

static bool list_devices(struct idler *idler)
{
	const struct critical_input *input = idler->input;

	for (size_t i = 0; i < input->queues.count; i++) {
		idler->device_of[i] = idle_device(idler, &input->queues.list[i]);
		if (idler->device_of[i] == CRITICAL_NONE)
			return false;
	}
	idler->next_device = malloc((idler->devices.count + 1) * sizeof(*idler->next_device));
	if (!idler->next_device)
		return false;
	for (size_t i = idler->devices.count; i-- > 0;) {
		uint32_t *first = &idler->first_device[idler->devices.list[i].process];

		idler->next_device[i] = *first;
		*first = (uint32_t)i;
	}
	return true;
}

/* Operations are in the order of their start. */
static bool add_busy(struct device *device, const struct critical_op *op)
{
	struct busy *last = device->busy.count ? &device->busy.list[device->busy.count - 1] : NULL;

	if (last && op->start_ns <= last->end_ns) {
		last->end_ns = op->end_ns > last->end_ns ? op->end_ns : last->end_ns;
		return true;
	}
	if (!grow((void **)&device->busy.list, &device->busy.room, device->busy.count,
		  sizeof(*device->busy.list)))
		return false;
	last = device->busy.count ? &device->busy.list[device->busy.count - 1] : NULL;
	device->busy.list[device->busy.count++] = (struct busy){
		op->start_ns, op->end_ns,
		last ? last->idle_before_ns + op->start_ns - last->end_ns : 0
	};
	return true;
}

/* How long the device had been idle at a moment, since its first operation. */
static int64_t idle_until(const struct device *device, int64_t ns)
{
	size_t low = 0, high = device->busy.count;
	const struct busy *before;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (device->busy.list[middle].start_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	before = &device->busy.list[low - 1];
	return before->idle_before_ns + (ns > before->end_ns ? ns - before->end_ns : 0);
}

/* ---- causes ---------------------------------------------------------------------------------- */

static bool names_data(struct idler *idler, uint32_t name)
{
	static const char *const words[] = { "DataLoader", "_next_data", "data_loader" };
	const struct store_name *text = &idler->input->recording->names[name];
	uint8_t *known = &idler->is_data[name];

	if (!name)
		return false;
	for (size_t i = 0; !*known && i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(text->text, text->text_bytes, words[i], strlen(words[i])))
			*known = 2;
	if (!*known)
		*known = 1;
	return *known == 2;
}

/* A call that waits; gaps between operations have no name. */
static bool is_call(const struct critical_label *label)
{
	return label->kind == CRITICAL_KIND_WAIT && label->word == CRITICAL_NAMED;
}

static enum critical_cause cause_of(struct idler *idler, const struct critical_label *label,
				    bool waited)
{
	if ((label->word == CRITICAL_NAMED && names_data(idler, label->name)) ||
	    names_data(idler, label->zone) || names_data(idler, label->function))
		return CRITICAL_CAUSE_DATA;
	if (waited)
		return CRITICAL_CAUSE_SYNCHRONISATION;
	return label->kind == CRITICAL_KIND_LAUNCH ||
			       (label->kind == CRITICAL_KIND_WAIT && !is_call(label))
		       ? CRITICAL_CAUSE_LAUNCH
		       : CRITICAL_CAUSE_HOST;
}

static bool add_idle(struct idler *idler, const struct part *part, bool waited)
{
	struct critical_table *path = &idler->result->path, *idle = &idler->result->idle;
	const struct critical_span *row = &path->rows.list[part->row];
	const struct critical_label *own = &path->labels.list[row->label], *said = own;
	const enum critical_cause cause = cause_of(idler, own, waited);
	struct critical_label label;
	uint32_t number;

	if (cause == CRITICAL_CAUSE_SYNCHRONISATION)
		said = &path->labels.list[path->rows.list[idler->call].label];
	label = *said;
	label.process = own->process;
	label.thread = CRITICAL_NONE;
	label.queue = idler->devices.list[part->device].name;
	label.kind = (uint8_t)cause;
	label.all_win_ns = -1;
	number = critical_label(idle, &label);
	if (number == CRITICAL_NONE || !grow((void **)&idle->rows.list, &idle->rows.room,
					     idle->rows.count, sizeof(*idle->rows.list)))
		return false;
	idle->rows.list[idle->rows.count++] = (struct critical_span){ .start_ns = row->start_ns,
								      .duration_ns = part->idle_ns,
								      .label = number,
								      .step = row->step };
	return true;
}

/* ---- runs of the path ------------------------------------------------------------------------ */

/* Operations count for the wait after them, also those before a run in which no device was. */
static bool end_run(struct idler *idler)
{
	const bool waited = idler->call != CRITICAL_NONE && idler->any_busy &&
			    idler->busy_ns * 2 >= idler->idle_ns;
	bool ok = true;

	for (size_t i = 0; ok && i < idler->parts.count; i++)
		if (idler->parts.list[i].idle_ns > 0)
			ok = add_idle(idler, &idler->parts.list[i], waited);
	if (idler->parts.count) {
		idler->busy_ns = 0;
		idler->any_busy = false;
	}
	idler->parts.count = 0;
	idler->idle_ns = 0;
	idler->call = CRITICAL_NONE;
	return ok;
}

/* The part of a row in which the device was used, from its first operation to its last. */
static bool add_part_of(struct idler *idler, uint32_t number, uint32_t device)
{
	const struct critical_span *row = &idler->result->path.rows.list[number];
	const struct device *one = &idler->devices.list[device];
	const int64_t last_ns = one->busy.count ? one->busy.list[one->busy.count - 1].end_ns : 0;
	const int64_t end_ns = row->start_ns + row->duration_ns;
	const int64_t from_ns = row->start_ns < last_ns ? row->start_ns : last_ns;
	struct part part = { .row = number, .device = device };

	if (!one->busy.count || from_ns < one->busy.list[0].start_ns)
		return true;
	part.idle_ns = idle_until(one, end_ns < last_ns ? end_ns : last_ns) -
		       idle_until(one, from_ns);
	if (!grow((void **)&idler->parts.list, &idler->parts.room, idler->parts.count,
		  sizeof(part)))
		return false;
	idler->parts.list[idler->parts.count++] = part;
	idler->idle_ns += part.idle_ns;
	return true;
}

static bool add_host_row(struct idler *idler, uint32_t number)
{
	const struct critical_table *path = &idler->result->path;
	const struct critical_span *row = &path->rows.list[number];
	const struct critical_label *label = &path->labels.list[row->label];
	const size_t before = idler->parts.count;

	for (uint32_t i = idler->first_device[label->process]; i != CRITICAL_NONE;
	     i = idler->next_device[i])
		if (!add_part_of(idler, number, i))
			return false;
	if (is_call(label) && idler->parts.count > before &&
	    (idler->call == CRITICAL_NONE ||
	     row->duration_ns > path->rows.list[idler->call].duration_ns))
		idler->call = number;
	return true;
}

static bool find_idle_of_path(struct idler *idler, uint32_t from, uint32_t to)
{
	const struct critical_table *path = &idler->result->path;
	bool ok = true;

	idler->busy_ns = 0;
	idler->any_busy = false;
	for (uint32_t i = from; ok && i < to; i++) {
		const struct critical_span *row = &path->rows.list[i];
		const uint8_t kind = path->labels.list[row->label].kind;

		if (kind == CRITICAL_KIND_KERNEL || kind == CRITICAL_KIND_COPY ||
		    kind == CRITICAL_KIND_COLLECTIVE) {
			ok = end_run(idler);
			/* A collective waits for other ranks, too. */
			if (kind != CRITICAL_KIND_COLLECTIVE) {
				idler->busy_ns += row->duration_ns;
				idler->any_busy = true;
			}
		} else {
			ok = add_host_row(idler, i);
		}
	}
	return ok && end_run(idler);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool idler_init(struct idler *idler)
{
	const size_t processes = idler->input->recording->process_count;

	idler->device_of = malloc((idler->input->queues.count + 1) * sizeof(*idler->device_of));
	idler->first_device = malloc((processes + 1) * sizeof(*idler->first_device));
	idler->is_data = calloc(idler->input->recording->name_count + 1, 1);
	if (!idler->device_of || !idler->first_device || !idler->is_data)
		return false;
	memset(idler->first_device, 0xff, (processes + 1) * sizeof(*idler->first_device));
	return list_devices(idler);
}

static void idler_fini(struct idler *idler)
{
	for (size_t i = 0; i < idler->devices.count; i++)
		free(idler->devices.list[i].busy.list);
	free(idler->devices.list);
	free(idler->device_of);
	free(idler->first_device);
	free(idler->next_device);
	free(idler->is_data);
	free(idler->parts.list);
}

bool critical_find_idle(const struct critical_input *input, struct critical_result *result)
{
	struct idler idler = { .input = input, .result = result, .call = CRITICAL_NONE };
	const struct critical_table *path = &result->path;
	bool ok = idler_init(&idler);

	for (size_t i = 0; ok && i < input->ops.count; i++)
		ok = add_busy(&idler.devices.list[idler.device_of[input->ops.list[i].queue]],
			      &input->ops.list[i]);
	for (size_t from = 0, to = 0; ok && from < path->rows.count; from = to) {
		const uint32_t of = path->labels.list[path->rows.list[from].label].path;

		while (to < path->rows.count &&
		       path->labels.list[path->rows.list[to].label].path == of)
			to++;
		ok = find_idle_of_path(&idler, (uint32_t)from, (uint32_t)to);
	}
	idler_fini(&idler);
	return ok;
}
