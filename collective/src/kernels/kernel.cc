#include "kernels/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace muster::collective {
namespace {

// For smaller copies the fence costs more than the streaming stores save.
constexpr std::size_t kLeastStreamedCopy = 4096;

Isa isa_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return Isa::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return Isa::kAvx2;
  if (__builtin_cpu_supports("sse4.1")) return Isa::kSse;
#endif
  return Isa::kScalar;
}

// The strongest instruction set of the processor, determined once.
Isa strongest_isa() {
  static const Isa kStrongest = isa_of_processor();
  return kStrongest;
}

Isa limited_isa() {
  const char* const limit = std::getenv("MUSTER_COLLECTIVE_ISA");
  if (limit == nullptr) return strongest_isa();
  for (const Isa isa : {Isa::kScalar, Isa::kSse, Isa::kAvx2, Isa::kAvx512}) {
    if (to_string(isa) == limit) return std::min(isa, strongest_isa());
  }
  return strongest_isa();
}

Kernel::Run find(const KernelSpec& spec, Isa isa) {
  switch (std::min(isa, strongest_isa())) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return avx512::find(spec);
    case Isa::kAvx2:
      return avx2::find(spec);
    case Isa::kSse:
      return sse::find(spec);
#endif
    default:
      return scalar::find(spec);
  }
}

}  // namespace

Isa best_isa() {
  static const Isa kBest = limited_isa();
  return kBest;
}

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kSse:
      return "sse";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "an unknown instruction set";
}

const KernelSpec& spec_in(const Kernel& kernel) {
  return kernel.spec();
}

KernelSpec spec_of(DataType type, const Reduction& reduction, int ranks) {
  const bool average = reduction.op == ReduceOp::kAverage;
  return {.type = type,
          .op = average ? ReduceOp::kSum : reduction.op,
          .prescale = reduction.prescale,
          .postscale = reduction.postscale,
          .divisor = average ? ranks : 1};
}

DataType wide_type_of(DataType type) {
  const bool narrow = type == DataType::kFloat16 || type == DataType::kBFloat16;
  return narrow ? DataType::kFloat32 : type;
}

Kernel Kernel::of(const KernelSpec& spec, Isa isa) {
  Kernel kernel;
  kernel.spec_ = spec;
  kernel.bytes_in_ = size_of(spec.wide_in ? wide_type_of(spec.type) : spec.type);
  kernel.bytes_out_ = size_of(spec.wide_out ? wide_type_of(spec.type) : spec.type);
  kernel.run_ = find(spec, isa);
  return kernel;
}

// The maximum of one byte is that byte: a kernel that copies, with the widest available stores.
void copy(std::byte* out, const std::byte* in, std::size_t bytes, Stores stores) {
  if (bytes == 0 || out == in) return;
  if (stores == Stores::kCached || bytes < kLeastStreamedCopy) {
    std::memcpy(out, in, bytes);
    return;
  }
  static const Kernel kCopying = Kernel::of({.type = DataType::kUInt8, .op = ReduceOp::kMax});
  kCopying(&in, 1, out, bytes, Stores::kStreaming);
}

}  // namespace muster::collective
