// SSE4.1: 16 bytes at a time. 16-bit floats are converted by integer arithmetic.
#define MUSTER_KERNEL_ISA sse
#define MUSTER_KERNEL_BYTES 16
#include "kernels/find.h"
