/* Measures the cost of a module's row on this machine for kymo.overhead: empty forwards and
   backwards, on the cost lane. */
#include "record/adapter.h"

#include "torch.h"

#define TIMES 50
#define ROUNDS 5

/* The fastest round: any excess is due to the machine. */
static void torch_cost_measure(struct thread *thread, PyObject *module, struct entry *backward,
			       uint64_t *forward_ticks, uint64_t *backward_ticks)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct kymo__lane *lane = kymo__cost_lane_begin();
		uint64_t forward = forward_cost(thread, module, TIMES), both = forward;

		if (backward)
			both += backward_cost(thread, backward, TIMES);
		kymo__cost_lane_end(lane);
		*forward_ticks = forward < *forward_ticks ? forward : *forward_ticks;
		*backward_ticks = both - forward < *backward_ticks ? both - forward
								   : *backward_ticks;
	}
}

/* A row costs half of a forward and a backward. The query of accelerator memory, made for each row,
   is not included. */
void cost_measure(struct thread *thread, PyObject *module)
{
	struct entry *entry = names_first(module);
	uint64_t forward = UINT64_MAX, backward = UINT64_MAX;
	bool nodes = state.callback_on && symbols.sequence_offset;

	if (!entry || !entry->selected || !torch_is_on())
		return; /* retried after another module */
	state.cost_known = true;
	steps_aside = true;
	torch_cost_measure(thread, module, nodes ? entry : NULL, &forward, &backward);
	steps_aside = false;
	if (nodes)
		forward = (forward + backward) / 2;
	kymo__source_cost(KYMO_SOURCE_TORCH, forward / TIMES);
}
