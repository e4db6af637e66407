/* Marked for Tracy in C, with every macro that kymo knows; nothing of kymo in it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracy/TracyC.h>

static volatile double sink;

static void spin(int rounds)
{
	for (int i = 1; i <= rounds; i++)
		sink = sink + 1.0 / i;
}

static void zones(void)
{
	TracyCZone(plain, 1);
	TracyCZoneN(name, "a name", 1);
	TracyCZoneC(color, 0xff, 1);
	TracyCZoneNC(both, "colored", 0xff, 1);
	TracyCZoneN(off, "never", 0);
	TracyCZoneText(plain, "of the outer", 12);
	TracyCZoneText(off, "never", 5);
	TracyCZoneValue(name, 42);
	TracyCZoneColor(name, 0xff);
	spin(10);
	TracyCZoneEnd(off);
	TracyCZoneEnd(both);
	TracyCZoneEnd(color);
	TracyCZoneEnd(name);
	TracyCZoneEnd(plain);
}

static void stacks(void)
{
	TracyCZoneS(plain, 4, 1);
	TracyCZoneNS(name, "stack", 4, 1);
	TracyCZoneCS(color, 0xff, 4, 1);
	TracyCZoneNCS(all, "stack and color", 0xff, 4, 1);
	TracyCZoneName(all, "renamed", 7);
	TracyCZoneNameF(name, "formatted %d", 7);
	TracyCZoneTextF(name, "text %d", 7);
	spin(1);
	TracyCZoneEnd(all);
	TracyCZoneEnd(color);
	TracyCZoneEnd(name);
	TracyCZoneEnd(plain);
}

static void others(void)
{
	void *ptr = malloc(64);
	TracyCAlloc(ptr, 64);
	TracyCFree(ptr);
	TracyCAllocN(ptr, 32, "pool");
	TracyCFreeN(ptr, "pool");
	TracyCMessage("a message", 9);
	TracyCMessageL("a literal");
	TracyCMessageC("colored", 7, 0xff);
	TracyCMessageLC("colored literal", 0xff);
	TracyCAppInfo("version 7", 9);
	TracyCPlotConfig("queue", TracyPlotFormatNumber, 0, 0, 0);
	TracyCPlot("queue", 1.5);
	TracyCPlotF("queue", 2.5f);
	TracyCPlotI("queue", 3);
	TracyCFrameMark;
	TracyCFrameMark;
	TracyCFrameMarkNamed("physics");
	TracyCFrameMarkStart("loading");
	TracyCFrameMarkEnd("loading");
	TracyCSetThreadName("the C thread");
	free(ptr);
}

int main(void)
{
	for (int i = 0; i < 10; i++)
		zones();
	stacks();
	others();
	printf("%s\n", TracyCIsConnected ? "recorded" : "not recorded");
	return 0;
}
