// AVX-512 (F, BW, DQ, VL): 64 bytes at a time, and the rest under a mask.
#define MUSTER_KERNEL_ISA avx512
#define MUSTER_KERNEL_BYTES 64
#include "kernels/find.h"
