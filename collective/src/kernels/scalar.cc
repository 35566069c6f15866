// One element at a time, with instructions that every processor has.
#define MUSTER_KERNEL_ISA scalar
#define MUSTER_KERNEL_BYTES 0
#include "kernels/find.h"
