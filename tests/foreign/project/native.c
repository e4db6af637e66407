#include <kymo/kymo.h>

int main(void)
{
	for (int i = 0; i < 7; i++) {
		KYMO_SCOPE("native work");
	}
	return 0;
}
