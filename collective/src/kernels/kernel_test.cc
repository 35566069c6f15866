#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "kernels/reference.h"

namespace muster::collective {
namespace {

using reference::Bytes;

constexpr DataType kTypes[] = {
    DataType::kFloat32,  DataType::kFloat64, DataType::kInt32, DataType::kInt64, DataType::kFloat16,
    DataType::kBFloat16, DataType::kInt8,    DataType::kUInt8, DataType::kInt16, DataType::kUInt16,
    DataType::kUInt32,   DataType::kUInt64,  DataType::kBool};
constexpr ReduceOp kKernelOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                   ReduceOp::kProduct};
constexpr Isa kIsas[] = {Isa::kScalar, Isa::kSse, Isa::kAvx2, Isa::kAvx512};
constexpr Stores kBothStores[] = {Stores::kCached, Stores::kStreaming};

DataType type_in(const KernelSpec& spec) {
  return spec.wide_in ? wide_type_of(spec.type) : spec.type;
}

std::string describe(const KernelSpec& spec, Isa isa) {
  return std::string(to_string(isa)) + " " + std::string(to_string(spec.op)) + " of " +
         std::string(to_string(type_in(spec))) + " into " +
         std::string(to_string(reference::type_out(spec))) + ", scales " +
         std::to_string(spec.prescale) + " " + std::to_string(spec.postscale) + " / " +
         std::to_string(spec.divisor);
}

// Half of the floats are special values of the arithmetic, a third have a common magnitude, and the
// rest are random bits, as all integers are.
Bytes input_of(DataType type, std::size_t count, std::mt19937_64& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::array<double, 12> apart = {0.,   -0.,    1.,      -1.,  kInfinity, -kInfinity,
                                        kNan, 1e-310, 6.1e-41, 3e-6, 65519.,    3.4e38};
  const std::size_t bytes = size_of(type);
  Bytes input(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const to = input.data() + i * bytes;
    const std::uint64_t bits = random();
    std::memcpy(to, &bits, bytes);
    const std::uint64_t kind = random() % 6;
    const double common = static_cast<double>(random() % 20001) / 1024 - 10;
    const double value = kind < 3 ? apart[random() % apart.size()] : common;
    if (!is_float(type) || kind > 4) continue;
    const auto single = static_cast<float>(value);
    if (type == DataType::kFloat32) reference::put(to, single);
    if (type == DataType::kFloat64) reference::put(to, value);
    if (type == DataType::kFloat16) reference::put(to, reference::encode(single, reference::kHalf));
    if (type == DataType::kBFloat16) {
      reference::put(to, reference::encode(single, reference::kBrain));
    }
  }
  return input;
}

std::vector<Bytes> inputs_of(const KernelSpec& spec, int n, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Bytes> inputs;
  for (int i = 0; i < n; ++i) inputs.push_back(input_of(type_in(spec), count, random));
  return inputs;
}

// Memory that begins `shift` bytes after a cache line, between guards that must not be written.
class Shifted {
 public:
  Shifted(std::size_t bytes, std::size_t shift)
      : bytes_(bytes), memory_(std::make_unique<std::byte[]>(bytes + shift + 3 * kGuard)) {
    std::byte* const line = memory_.get() + -reinterpret_cast<std::uintptr_t>(memory_.get()) % 64;
    at_ = line + kGuard + shift;
    std::fill(at_ - kGuard, at_ + bytes + kGuard, std::byte{0xa5});
  }
  Shifted(const Bytes& content, std::size_t shift) : Shifted(content.size(), shift) {
    std::copy(content.begin(), content.end(), at_);
  }
  std::byte* data() const { return at_; }
  Bytes content() const { return {at_, at_ + bytes_}; }
  bool guards_hold() const {
    const auto untouched = [](std::byte byte) { return byte == std::byte{0xa5}; };
    return std::all_of(at_ - kGuard, at_, untouched) &&
           std::all_of(at_ + bytes_, at_ + bytes_ + kGuard, untouched);
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* at_ = nullptr;
};

std::vector<const std::byte*> pointers(const std::vector<Shifted>& inputs) {
  std::vector<const std::byte*> at;
  for (const Shifted& input : inputs) at.push_back(input.data());
  return at;
}

Bytes run(const KernelSpec& spec, Isa isa, const std::vector<Bytes>& inputs, std::size_t count) {
  const Kernel kernel = Kernel::of(spec, isa);
  std::vector<const std::byte*> at;
  for (const Bytes& input : inputs) at.push_back(input.data());
  Bytes out(count * kernel.bytes_out());
  kernel(at.data(), static_cast<int>(at.size()), out.data(), count);
  return out;
}

template <typename T>
Bytes copied_bytes(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<T> reduced(const KernelSpec& spec, Isa isa, const std::vector<std::vector<T>>& inputs) {
  std::vector<Bytes> bytes;
  for (const std::vector<T>& input : inputs) bytes.push_back(copied_bytes(input));
  const Bytes out = run(spec, isa, bytes, inputs[0].size());
  std::vector<T> values(inputs[0].size());
  std::memcpy(values.data(), out.data(), out.size());
  return values;
}

// The first element in which the two differ, or -1.
std::ptrdiff_t first_difference(const Bytes& a, const Bytes& b, std::size_t element) {
  if (a.size() != b.size()) return 0;
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin());
  return at == a.end() ? -1 : (at - a.begin()) / static_cast<std::ptrdiff_t>(element);
}

std::vector<KernelSpec> all_specs() {
  struct Scales {
    double before, after;
    int divisor;
  };
  const Scales scales[] = {{1, 1, 1}, {1, 1, 4}, {1, 1, 3}, {0.37, 1, 1}, {2.5, -1.75, 7}};
  std::vector<KernelSpec> specs;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kKernelOps) {
      for (const Scales& scale : scales) {
        if (type == DataType::kBool && scale.divisor * scale.before != 1) continue;
        for (int wide = 0; wide < (type == wide_type_of(type) ? 1 : 4); ++wide) {
          specs.push_back({.type = type,
                           .op = op,
                           .prescale = scale.before,
                           .postscale = scale.after,
                           .divisor = scale.divisor,
                           .wide_in = (wide & 1) != 0,
                           .wide_out = (wide & 2) != 0});
        }
      }
    }
  }
  return specs;
}

TEST(Kernel, HasTheBitsOfTheReferenceInEveryInstructionSet) {
  constexpr std::size_t kCount = 811;
  for (const KernelSpec& spec : all_specs()) {
    for (const int n : {1, 2, 3, 4, 7}) {
      const std::vector<Bytes> inputs = inputs_of(spec, n, kCount, static_cast<std::uint64_t>(n));
      const Bytes expected = reference::reduce(spec, inputs, kCount);
      for (const Isa isa : kIsas) {
        const Bytes out = run(spec, isa, inputs, kCount);
        EXPECT_EQ(first_difference(out, expected, size_of(reference::type_out(spec))), -1)
            << describe(spec, isa) << ", inputs: " << n;
      }
    }
  }
}

TEST(Kernel, ReducesAnyCount) {
  std::vector<std::size_t> counts(150);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i;
  counts.insert(counts.end(), {255, 256, 257, 509, 512, 513, 1021, 4099});
  for (const KernelSpec& spec : all_specs()) {
    if (spec.op != ReduceOp::kSum || (spec.divisor != 1 && spec.divisor != 3)) continue;
    const std::vector<Bytes> inputs = inputs_of(spec, 3, counts.back(), 5);
    const Bytes all = run(spec, Isa::kScalar, inputs, counts.back());
    const std::size_t element = size_of(reference::type_out(spec));
    for (const std::size_t count : counts) {
      const Bytes expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count * element));
      for (const Isa isa : kIsas) {
        EXPECT_EQ(first_difference(run(spec, isa, inputs, count), expected, element), -1)
            << describe(spec, isa) << ", count: " << count;
      }
    }
  }
}

TEST(Kernel, WritesItsOutputsAndNothingElseAtAnyAlignment) {
  constexpr std::size_t kCount = 331;
  for (const DataType type : kTypes) {
    const KernelSpec spec{.type = type};
    const std::vector<Bytes> inputs = inputs_of(spec, 2, kCount, 6);
    const Bytes expected = reference::reduce(spec, inputs, kCount);
    for (std::size_t shift = 0; shift < 64; ++shift) {
      std::vector<Shifted> in;
      in.emplace_back(inputs[0], shift * 7 % 64);
      in.emplace_back(inputs[1], shift * 3 % 64);
      for (const Isa isa : kIsas) {
        for (const Stores stores : kBothStores) {
          const Shifted out(expected.size(), shift);
          Kernel::of(spec, isa)(pointers(in).data(), 2, out.data(), kCount, stores);
          ASSERT_EQ(first_difference(out.content(), expected, size_of(type)), -1)
              << describe(spec, isa) << ", shift: " << shift;
          ASSERT_TRUE(out.guards_hold()) << describe(spec, isa) << ", shift: " << shift;
        }
      }
    }
  }
}

TEST(Kernel, WritesSeveralOutputsOfDifferentAlignment) {
  constexpr std::size_t kCount = 1031;
  for (const KernelSpec& spec : all_specs()) {
    if (spec.op != ReduceOp::kSum || (spec.divisor != 1 && spec.divisor != 3)) continue;
    for (const int n : {1, 2, 4}) {
      const std::vector<Bytes> inputs = inputs_of(spec, n, kCount, 7);
      const Bytes expected = run(spec, Isa::kScalar, inputs, kCount);
      std::vector<Shifted> in;
      for (const Bytes& input : inputs) in.emplace_back(input, in.size());
      for (const Isa isa : kIsas) {
        for (const Stores stores : kBothStores) {
          std::vector<Shifted> outs;
          for (const std::size_t shift : {16U, 1U, 16U, 0U}) {
            outs.emplace_back(expected.size(), shift);
          }
          std::vector<std::byte*> to;
          for (const Shifted& out : outs) to.push_back(out.data());
          Kernel::of(spec, isa).to_all(pointers(in).data(), n, to.data(), 4, kCount, stores);
          for (const Shifted& out : outs) {
            EXPECT_EQ(out.content(), expected) << describe(spec, isa);
            EXPECT_TRUE(out.guards_hold()) << describe(spec, isa);
          }
        }
      }
    }
  }
}

TEST(Kernel, MayWriteOverAnyOneOfItsInputs) {
  constexpr std::size_t kCount = 1031;
  for (const KernelSpec& spec : all_specs()) {
    if (spec.wide_in != spec.wide_out) continue;
    for (const int n : {1, 2, 3}) {
      const std::vector<Bytes> inputs = inputs_of(spec, n, kCount, 8);
      const Bytes expected = run(spec, Isa::kScalar, inputs, kCount);
      for (const Isa isa : kIsas) {
        for (int over = 0; over < n; ++over) {
          std::vector<Shifted> in;
          for (const Bytes& input : inputs) in.emplace_back(input, 4 * in.size());
          const Shifted& out = in[static_cast<std::size_t>(over)];
          const Stores stores = kBothStores[over % 2];
          Kernel::of(spec, isa)(pointers(in).data(), n, out.data(), kCount, stores);
          EXPECT_EQ(out.content(), expected) << describe(spec, isa) << " over input " << over;
          EXPECT_TRUE(out.guards_hold());
        }
      }
    }
  }
}

// All bit patterns of each 16-bit float, converted to the accumulator and back.
TEST(Kernel, WidensEveryShortFloatAndNarrowsItBack) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    const KernelSpec widen{.type = type, .wide_out = true};
    const KernelSpec narrow{.type = type, .wide_in = true};
    for (const Isa isa : kIsas) {
      const Bytes wide = run(widen, isa, {copied_bytes(all)}, all.size());
      EXPECT_EQ(wide, reference::reduce(widen, {copied_bytes(all)}, all.size())) << to_string(isa);
      EXPECT_EQ(run(narrow, isa, {wide}, all.size()), reference::reduce(narrow, {wide}, all.size()))
          << to_string(isa);
    }
  }
}

// Values around the midpoint of two neighbours, where the rounding direction changes.
TEST(Kernel, RoundsShortFloatsToNearestEven) {
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    const auto format = type == DataType::kFloat16 ? reference::kHalf : reference::kBrain;
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 65535; ++bits) {
      const double low = reference::decode(static_cast<std::uint16_t>(bits), format);
      const double high = reference::decode(static_cast<std::uint16_t>(bits + 1), format);
      const auto middle = static_cast<float>(low / 2 + high / 2);
      values.insert(values.end(),
                    {std::nextafter(middle, -INFINITY), middle, std::nextafter(middle, INFINITY)});
    }
    const float overflow = type == DataType::kFloat16 ? 65520.F : 3.3961775e38F;
    values.insert(values.end(), {overflow, std::nextafter(overflow, 0.F), -overflow});
    const KernelSpec narrow{.type = type, .wide_in = true};
    const Bytes expected = reference::reduce(narrow, {copied_bytes(values)}, values.size());
    for (const Isa isa : kIsas) {
      const Bytes out = run(narrow, isa, {copied_bytes(values)}, values.size());
      EXPECT_EQ(first_difference(out, expected, 2), -1) << describe(narrow, isa);
    }
  }
}

TEST(Kernel, AddsShortFloatsInFloat32AndRoundsOnce) {
  // In bfloat16 256 + 1 is 256; in float32 the 1 is kept.
  const std::uint16_t one = 0x3f80;
  const std::uint16_t many = 0x4380;
  const std::vector<std::vector<std::uint16_t>> inputs = {{many}, {one}, {one}, {one}, {one}};
  for (const Isa isa : kIsas) {
    const auto sum = reduced<std::uint16_t>({.type = DataType::kBFloat16}, isa, inputs);
    EXPECT_EQ(reference::decode(sum[0], reference::kBrain), 260) << to_string(isa);
  }
}

// Below, `last` is the last place of 1 in the type; the last place of numbers between 2 and 4 is
// twice as large.
TEST(Kernel, RoundsShortFloatsAfterThePrescaleAndBeforeThePostscale) {
  struct Type {
    DataType type;
    reference::ShortFormat format;
  };
  for (const Type& type :
       {Type{DataType::kFloat16, reference::kHalf}, Type{DataType::kBFloat16, reference::kBrain}}) {
    const float last = std::ldexp(1.F, -type.format.fraction_bits);
    const auto sum_of_three = [&](KernelSpec spec, Isa isa, float value) {
      spec.type = type.type;
      const std::uint16_t bits = reference::encode(value, type.format);
      // In a whole group, and in the rest after it.
      const auto sums =
          reduced<std::uint16_t>(spec, isa, {3, std::vector<std::uint16_t>(67, bits)});
      EXPECT_EQ(sums, std::vector<std::uint16_t>(67, sums[0])) << describe(spec, isa);
      return reference::decode(sums[0], type.format);
    };
    for (const Isa isa : kIsas) {
      // 1 + 3/4 last becomes 1 + last, and three of these 3 + 4 last; 3 * (1 + 3/4 last) itself
      // would become 3 + 2 last.
      EXPECT_EQ(sum_of_three({.prescale = 1 + 0.75 * last}, isa, 1), 3 + 4 * last);
      // 3 + 3 last becomes 3 + 4 last, and 3/4 of it 9/4 + 4 last; 3/4 of 3 + 3 last itself would
      // become 9/4 + 2 last.
      EXPECT_EQ(sum_of_three({.postscale = 0.75}, isa, 1 + last), 2.25F + 4 * last);
    }
  }
}

TEST(Kernel, AveragesShortFloatsWithoutRoundingTheirSum) {
  const std::uint16_t large = reference::encode(60000, reference::kHalf);
  for (const Isa isa : kIsas) {
    for (const int n : {2, 3}) {
      const std::vector<std::vector<std::uint16_t>> inputs(static_cast<std::size_t>(n), {large});
      const KernelSpec average = spec_of(DataType::kFloat16, ReduceOp::kAverage, n);
      EXPECT_EQ(reduced(average, isa, inputs), inputs[0]) << describe(average, isa);
    }
  }
}

TEST(Kernel, AveragesEqualValuesToThatValue) {
  for (int n = 1; n <= 16; ++n) {
    std::vector<float> values;
    // Short enough that their sums are exact.
    for (int i = 0; i < 1000; ++i)
      values.push_back(std::ldexp(static_cast<float>(i * 997), i % 90 - 60));
    const std::vector<std::vector<float>> inputs(static_cast<std::size_t>(n), values);
    const KernelSpec average = spec_of(DataType::kFloat32, ReduceOp::kAverage, n);
    for (const Isa isa : kIsas) EXPECT_EQ(reduced(average, isa, inputs), values) << n;
  }
}

TEST(Kernel, PropagatesANaNOfAnyInputAndOrdersMinusZeroBelowZero) {
  struct Case {
    float a, b, least, greatest;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {{nan, 1, nan, nan},        {1, nan, nan, nan},
                        {nan, -nan, nan, nan},     {-INFINITY, nan, nan, nan},
                        {0.F, -0.F, -0.F, 0.F},    {-0.F, 0.F, -0.F, 0.F},
                        {-0.F, -0.F, -0.F, -0.F},  {-INFINITY, INFINITY, -INFINITY, INFINITY},
                        {1e-45F, 0.F, 0.F, 1e-45F}};
  for (const Case& c : cases) {
    // In a whole group, and in the rest after it.
    for (const std::size_t count : {1U, 64U}) {
      const std::vector<std::vector<float>> inputs = {std::vector<float>(count, c.a),
                                                      std::vector<float>(count, c.b)};
      const auto bits = [&](float value) { return copied_bytes(std::vector<float>(count, value)); };
      for (const Isa isa : kIsas) {
        EXPECT_EQ(copied_bytes(reduced<float>({.op = ReduceOp::kMin}, isa, inputs)), bits(c.least));
        EXPECT_EQ(copied_bytes(reduced<float>({.op = ReduceOp::kMax}, isa, inputs)),
                  bits(c.greatest));
      }
    }
  }
}

TEST(Kernel, WrapsIntegersAndDividesTowardsZero) {
  using Ints = std::vector<std::int32_t>;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const Isa isa : kIsas) {
    const KernelSpec sum{.type = DataType::kInt32};
    EXPECT_EQ(reduced<std::int32_t>(sum, isa, {{kMost, 5}, {1, -7}}), (Ints{-kMost - 1, -2}));
    const KernelSpec average = spec_of(DataType::kInt32, ReduceOp::kAverage, 2);
    EXPECT_EQ(reduced<std::int32_t>(average, isa, {{-4, 5, kMost}, {-3, 2, 1}}),
              (Ints{-3, 3, -(kMost / 2) - 1}));
    const KernelSpec wide_average = spec_of(DataType::kUInt64, ReduceOp::kAverage, 3);
    EXPECT_EQ(reduced<std::uint64_t>(wide_average, isa, {{~0ULL}, {0}, {0}}),
              (std::vector<std::uint64_t>{~0ULL / 3}));
  }
}

TEST(Kernel, RoundsAScaledAverageOfIntegersOnce) {
  using Ints = std::vector<std::int32_t>;
  const KernelSpec of_two = spec_of(DataType::kInt32, {ReduceOp::kAverage, 1, 2}, 2);
  const KernelSpec of_eleven = spec_of(DataType::kInt32, {ReduceOp::kAverage, 1, 3}, 11);
  const KernelSpec wide = spec_of(DataType::kInt64, {ReduceOp::kAverage, 1, 2}, 2);
  for (const Isa isa : kIsas) {
    EXPECT_EQ(reduced<std::int32_t>(of_two, isa, {{2, -2}, {3, -3}}), (Ints{5, -5}));
    EXPECT_EQ(reduced<std::int32_t>(of_eleven, isa, std::vector<Ints>(11, {5})), (Ints{15}));
    EXPECT_EQ(reduced<std::int64_t>(wide, isa, {{2}, {3}}), (std::vector<std::int64_t>{5}));
  }
}

TEST(Kernel, SaturatesIntegersThatAScaleMakesTooLarge) {
  using Ints = std::vector<std::int64_t>;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto scaled = [](Isa isa, double factor, Ints values) {
    const KernelSpec spec{.type = DataType::kInt64, .postscale = factor};
    return reduced<std::int64_t>(spec, isa, {std::move(values)});
  };
  for (const Isa isa : kIsas) {
    EXPECT_EQ(scaled(isa, 1e30, {1, -1, 0}), (Ints{kMost, -kMost - 1, 0}));
    EXPECT_EQ(scaled(isa, -1.5, {3, -3}), (Ints{-4, 4}));
    EXPECT_EQ(scaled(isa, NAN, {3, -3}), (Ints{0, 0}));
    EXPECT_EQ(scaled(isa, INFINITY, {3, 0, -3}), (Ints{kMost, 0, -kMost - 1}));
  }
}

TEST(Kernel, TreatsEveryNonZeroByteAsTrue) {
  using Values = std::vector<std::uint8_t>;
  const std::vector<Values> inputs = {{0, 0, 2, 255}, {0, 4, 0, 1}};
  for (const Isa isa : kIsas) {
    for (const ReduceOp op : kKernelOps) {
      const bool is_or = op == ReduceOp::kSum || op == ReduceOp::kMax;
      EXPECT_EQ(reduced<std::uint8_t>({.type = DataType::kBool, .op = op}, isa, inputs),
                is_or ? (Values{0, 1, 1, 1}) : (Values{0, 0, 0, 1}));
    }
  }
}

TEST(Kernel, CombinesTheBitsOfIntegersAndTheTruthOfBools) {
  const std::vector<std::vector<std::uint16_t>> inputs(
      {std::vector<std::uint16_t>(100, 0x00ff), std::vector<std::uint16_t>(100, 0x0ff0)});
  const std::vector<std::vector<std::uint8_t>> truths = {{0, 0, 2, 255}, {0, 4, 0, 1}};
  using Truths = std::vector<std::uint8_t>;
  for (const Isa isa : kIsas) {
    const auto bits = [&](ReduceOp op) {
      return reduced<std::uint16_t>({.type = DataType::kUInt16, .op = op}, isa, inputs).back();
    };
    EXPECT_EQ(bits(ReduceOp::kBitAnd), 0x00f0);
    EXPECT_EQ(bits(ReduceOp::kBitOr), 0x0fff);
    EXPECT_EQ(bits(ReduceOp::kBitXor), 0x0f0f);
    const auto truth = [&](ReduceOp op) {
      return reduced<std::uint8_t>({.type = DataType::kBool, .op = op}, isa, truths);
    };
    EXPECT_EQ(truth(ReduceOp::kBitAnd), (Truths{0, 0, 0, 1}));
    EXPECT_EQ(truth(ReduceOp::kBitOr), (Truths{0, 1, 1, 1}));
    EXPECT_EQ(truth(ReduceOp::kBitXor), (Truths{0, 1, 1, 0}));
  }
}

TEST(KernelSpec, DividesByTheRanksForAnAverageOnly) {
  const KernelSpec average = spec_of(DataType::kInt8, {ReduceOp::kAverage, 2, 3}, 5);
  EXPECT_EQ(average.op, ReduceOp::kSum);
  EXPECT_EQ(average.divisor, 5);
  EXPECT_EQ(average.prescale, 2);
  EXPECT_EQ(average.postscale, 3);
  EXPECT_EQ(spec_of(DataType::kInt8, ReduceOp::kMax, 5).divisor, 1);
}

TEST(Kernel, ReportsTheBytesOfItsElements) {
  const Kernel kernel = Kernel::of({.type = DataType::kFloat16, .wide_out = true});
  EXPECT_EQ(kernel.bytes_in(), 2U);
  EXPECT_EQ(kernel.bytes_out(), 4U);
  EXPECT_EQ(Kernel::of({.type = static_cast<DataType>(77)}).bytes_in(), 0U);
}

// In a process of its own, since the variable is read once.
TEST(BestIsaDeathTest, IsNoStrongerThanTheEnvironmentAllows) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with_best = [](const char* limit) {
    setenv("MUSTER_COLLECTIVE_ISA", limit, 1);
    std::exit(static_cast<int>(best_isa()));
  };
  EXPECT_EXIT(exit_with_best("scalar"), testing::ExitedWithCode(0), "");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.1")) {
    EXPECT_EXIT(exit_with_best("sse"), testing::ExitedWithCode(1), "");
  }
#endif
}

TEST(Copy, CopiesAnySizeAtAnyAlignment) {
  std::mt19937_64 random(1);
  const Bytes content = input_of(DataType::kUInt8, 9001, random);
  for (const std::size_t size : {0U, 1U, 63U, 4096U, 4097U, 9001U}) {
    const Bytes part(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(size));
    for (std::size_t shift = 0; shift < 64; shift += 3) {
      for (const Stores stores : kBothStores) {
        const Shifted from(part, shift * 5 % 64);
        const Shifted to(size, shift);
        copy(to.data(), from.data(), size, stores);
        EXPECT_EQ(to.content(), part) << size << " bytes, shift " << shift;
        EXPECT_TRUE(to.guards_hold());
      }
    }
  }
}

}  // namespace
}  // namespace muster::collective
