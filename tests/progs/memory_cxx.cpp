// Allocates in functions of C++: what these are called in reports.
#include <cstddef>

namespace shop
{
template <typename T> __attribute__((noinline, noclone)) T *shelf(std::size_t count)
{
	T *all = new T[count];

	all[0] = T(1); // so that it is a call, and no jump
	return all;
}

// Of its name the linker's form has some 1,000 bytes.
template <long... numbers> __attribute__((noinline, noclone)) char *crate(std::size_t bytes)
{
	char *all = new char[bytes];

	all[0] = 1;
	return all;
}
#define TEN(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9
#define FIFTY(n) TEN(n), TEN(n + 10), TEN(n + 20), TEN(n + 30), TEN(n + 40)
} // namespace shop

int main()
{
	char *volatile crate = shop::crate<FIFTY(1000000), FIFTY(1000050)>(900000);

	delete[] crate;
	double *volatile all = shop::shelf<double>(100000);

	delete[] all;
	return 0;
}
