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
} // namespace shop

int main()
{
	double *volatile all = shop::shelf<double>(100000);

	delete[] all;
	return 0;
}
