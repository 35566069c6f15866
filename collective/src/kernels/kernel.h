// The arithmetic of every reduction: n inputs become one result, element by element, in one pass
// over memory. Scaling and the casts of 16-bit floats happen in registers on the way.
//
//   const Kernel sum = Kernel::of({.type = DataType::kBFloat16});
//   sum(inputs, 2, out, count);
//
// Inputs are combined in the given order, so that every instruction set gives the same bits.
//
// Thread-safety: a Kernel is a value; running one reads and writes only its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/collective/types.h"

namespace muster::collective {

/// How results are written. kStreaming bypasses the caches (non-temporal stores), for data that is
/// not read soon, or that a core with another cache reads next. It ends with a store fence.
enum class Stores { kCached, kStreaming };

/// The supported instruction sets, weakest first.
enum class Isa { kScalar, kSse, kAvx2, kAvx512 };

/// The strongest instruction set that this processor and its system support, limited by the
/// environment variable MUSTER_COLLECTIVE_ISA (scalar, sse, avx2, avx512).
Isa best_isa();
std::string_view to_string(Isa isa);

/// What a kernel computes: out = postscale * ((prescale * in[0]) op (prescale * in[1]) ...), then
/// divided by `divisor`. kAverage is kSum with the number of ranks as divisor; kAdasum has no
/// kernel. A wide input or output holds the type's accumulator instead of the type itself: float32
/// for 16-bit floats, otherwise the same. A reduction in several steps keeps its partial results
/// wide, and so rounds once.
///
/// A `prescale` other than 1 rounds each input to its own type, and a `postscale` other than 1
/// rounds the result to the output's type before it is multiplied: as if each factor were applied
/// by a kernel of its own. A divisor alone rounds nothing in between.
struct KernelSpec {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;  // kSum, kMin, kMax or kProduct
  double prescale = 1;
  double postscale = 1;
  int divisor = 1;
  bool wide_in = false;
  bool wide_out = false;
};

/// The spec that completes `reduction` over `ranks` ranks in one step.
KernelSpec spec_of(DataType type, const Reduction& reduction, int ranks);

/// The accumulator of a type, as a wide input or output holds it.
DataType wide_type_of(DataType type);

class Kernel {
 public:
  /// A spec whose type or op is out of range gives a kernel that must not be run.
  static Kernel of(const KernelSpec& spec, Isa isa = best_isa());

  /// Reduces `count` elements of `n` >= 1 inputs. `out` is one of the inputs, or overlaps no input.
  /// Buffers may have any alignment.
  void operator()(const std::byte* const* inputs, int n, std::byte* out, std::size_t count,
                  Stores stores = Stores::kCached) const {
    std::byte* const outs[] = {out};
    run_(*this, inputs, n, outs, 1, count, stores);
  }

  /// The same into `n_out` >= 1 outputs at once, which are equal or do not overlap.
  void to_all(const std::byte* const* inputs, int n, std::byte* const* outs, int n_out,
              std::size_t count, Stores stores = Stores::kCached) const {
    run_(*this, inputs, n, outs, n_out, count, stores);
  }

  const KernelSpec& spec() const { return spec_; }
  std::size_t bytes_in() const { return bytes_in_; }    // of an input element
  std::size_t bytes_out() const { return bytes_out_; }  // of an output element

  using Run = void (*)(const Kernel&, const std::byte* const* inputs, int n, std::byte* const* outs,
                       int n_out, std::size_t count, Stores);

 private:
  KernelSpec spec_;
  std::size_t bytes_in_ = 0;
  std::size_t bytes_out_ = 0;
  Run run_ = nullptr;
};

/// memcpy that can bypass the caches.
void copy(std::byte* out, const std::byte* in, std::size_t bytes, Stores stores = Stores::kCached);

// The kernels of each instruction set. One source (find.h and its includes) is compiled once for
// every Isa, with the options of that Isa and in a namespace of its own. A function must not be
// compiled under two sets of options with one name: the linker could keep the copy that an older
// processor cannot run. Therefore these sources use no function of the standard library, and of
// Kernel only its address.

/// Kernel::spec(), as a function that is compiled for every processor.
const KernelSpec& spec_in(const Kernel& kernel);

// The kernel of each instruction set for a spec; null if the set has no such kernel.
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
