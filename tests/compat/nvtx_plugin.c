/* A library with a part of NVTX of its own, which it initialises itself. */
#include <nvtx3/nvToolsExt.h>

void run(void);
void run(void)
{
	nvtxRangePushA("of the plugin");
	nvtxRangePop();
}
