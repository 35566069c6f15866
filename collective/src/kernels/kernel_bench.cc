// Measures the kernels: bytes read and written per second, by instruction set, type, number of
// inputs, and size, from the first-level cache to memory.
//
//   kernel_bench [minimum milliseconds for each figure]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace muster::collective {
namespace {

using Clock = std::chrono::steady_clock;

struct Row {
  const char* name;
  KernelSpec spec;
  int n = 2;
  Stores stores = Stores::kCached;
};

const Row kRows[] = {
    {"sum", {}},
    {"sum", {}, 2, Stores::kStreaming},
    {"sum", {}, 4},
    {"sum", {}, 8},
    {"average", {.divisor = 2}},
    {"average", {.divisor = 3}, 3},
    {"max", {.op = ReduceOp::kMax}},
    {"sum", {.type = DataType::kBFloat16}},
    {"sum", {.type = DataType::kBFloat16}, 2, Stores::kStreaming},
    {"sum", {.type = DataType::kBFloat16}, 4},
    {"average", {.type = DataType::kBFloat16, .divisor = 3}, 3},
    {"scaled sum", {.type = DataType::kBFloat16, .prescale = 0.5, .postscale = 0.5}},
    {"widening sum", {.type = DataType::kBFloat16, .wide_out = true}},
    {"sum", {.type = DataType::kFloat16}},
    {"sum", {.type = DataType::kFloat16}, 2, Stores::kStreaming},
    {"average", {.type = DataType::kFloat16, .divisor = 3}, 3},
    {"scaled sum", {.type = DataType::kFloat16, .prescale = 0.5, .postscale = 0.5}},
    {"sum", {.type = DataType::kFloat64}},
    {"sum", {.type = DataType::kInt32}},
    {"average", {.type = DataType::kInt32, .divisor = 3}},
    {"average", {.type = DataType::kInt64, .divisor = 3}},
    {"product", {.type = DataType::kInt8, .op = ReduceOp::kProduct}},
};

// The best of several rounds, which other load on the machine disturbs least.
double gigabytes_a_second(const Row& row, Isa isa, std::size_t bytes,
                          std::chrono::milliseconds least) {
  const Kernel kernel = Kernel::of(row.spec, isa);
  const std::size_t count = bytes / kernel.bytes_out();
  const std::size_t in_bytes = count * kernel.bytes_in();
  const std::size_t room = (std::max(bytes, in_bytes) + 63) / 64 * 64 + 64;
  std::vector<std::byte> memory(room * static_cast<std::size_t>(row.n + 1) + 64);
  std::byte* const start = memory.data() + -reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < row.n; ++i) inputs.push_back(start + room * static_cast<std::size_t>(i));
  std::byte* const out = start + room * static_cast<std::size_t>(row.n);
  const std::size_t moved = in_bytes * static_cast<std::size_t>(row.n) + bytes;
  const std::size_t calls = std::max<std::size_t>(1, (std::size_t{1} << 20) / moved);

  double best = 0;
  const auto end = Clock::now() + least;
  do {
    const auto before = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) kernel(inputs.data(), row.n, out, count, row.stores);
    const std::chrono::duration<double, std::nano> took = Clock::now() - before;
    best = std::max(best, static_cast<double>(moved * calls) / took.count());
  } while (Clock::now() < end);
  return best;
}

void print_table(std::chrono::milliseconds least) {
  const std::size_t sizes[] = {64, 8 << 10, 128 << 10, 2 << 20, 64 << 20};
  std::printf("GB/s, read and written, by bytes of output\n%-40s %-7s", "", "isa");
  for (const std::size_t size : sizes) std::printf("%10zu", size);
  std::printf("\n");
  for (const Row& row : kRows) {
    for (int isa = 0; isa <= static_cast<int>(best_isa()); ++isa) {
      const std::string name = std::string(to_string(row.spec.type)) + " " + row.name + " of " +
                               std::to_string(row.n) +
                               (row.stores == Stores::kStreaming ? ", streaming" : "");
      std::printf("%-40s %-7s", name.c_str(),
                  std::string(to_string(static_cast<Isa>(isa))).c_str());
      for (const std::size_t size : sizes) {
        std::printf("%10.1f", gigabytes_a_second(row, static_cast<Isa>(isa), size, least));
      }
      std::printf("\n");
    }
  }
}

}  // namespace
}  // namespace muster::collective

int main(int argc, char** argv) {
  const int least = argc > 1 ? std::atoi(argv[1]) : 20;
  muster::collective::print_table(std::chrono::milliseconds(least));
}
