/* What a row of a module costs on this machine, for kymo.overhead: forwards and backwards that do
   nothing, aside. */
#include "record/adapter.h"

#include "torch.h"

#define TIMES 50
#define ROUNDS 5

/* The fastest round: what is above it is the machine's, not ours. */
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

/* A row costs half of a forward and a backward. Memory of an accelerator, which is asked for each
   row, is not in it. */
void cost_measure(struct thread *thread, PyObject *module)
{
	struct entry *entry = names_first(module);
	uint64_t forward = UINT64_MAX, backward = UINT64_MAX;
	bool nodes = state.callback_on && symbols.sequence_offset;

	if (!entry || !entry->selected || !torch_is_on())
		return; /* after another one */
	state.cost_known = true;
	steps_aside = true;
	torch_cost_measure(thread, module, nodes ? entry : NULL, &forward, &backward);
	steps_aside = false;
	if (nodes)
		forward = (forward + backward) / 2;
	kymo__source_cost(KYMO_SOURCE_TORCH, forward / TIMES);
}
