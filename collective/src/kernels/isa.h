// The kernels as each instruction set has them: one source (find.h and what it includes), compiled
// once for every Isa under that Isa's options, each time inside a namespace of its own. No function
// may be compiled under two sets of options and the same name, or the linker would be free to keep
// the one that an older processor cannot run: so these sources use nothing of the standard library
// that is a function, and of Kernel only its address.
#pragma once

#include "kernels/kernel.h"

namespace muster::collective {

/// Kernel::spec(), as a function that is compiled for every processor.
const KernelSpec& spec_in(const Kernel& kernel);

// The kernel for a spec, or null where there is none.
namespace scalar {
Kernel::Run find(const KernelSpec& spec);
}
namespace sse {
Kernel::Run find(const KernelSpec& spec);
}
namespace avx2 {
Kernel::Run find(const KernelSpec& spec);
}
namespace avx512 {
Kernel::Run find(const KernelSpec& spec);
}

}  // namespace muster::collective
