// AVX2 and F16C: 32 bytes at a time.
#define MUSTER_KERNEL_ISA avx2
#define MUSTER_KERNEL_BYTES 32
#include "kernels/find.h"
