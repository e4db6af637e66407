#include <tracy/Tracy.hpp>
#include <tracy/TracyC.h>

int main()
{
	for (int i = 0; i < 5; i++) {
		ZoneScopedN("marked work");
	}
	return 0;
}
