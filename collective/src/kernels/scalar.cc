// One element at a time, with nothing that every processor does not have.
#define MUSTER_KERNEL_ISA scalar
#define MUSTER_KERNEL_BYTES 0
#include "kernels/find.h"
