#include "plugins/check.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace muster::collective {
namespace {

bool holds(const Communicator& world, const std::string& what, bool is_so) {
  if (!is_so) std::fprintf(stderr, "rank %d: wrong: %s\n", world.rank(), what.c_str());
  return is_so;
}

bool went(const Communicator& world, const std::string& what, const Status& status) {
  if (!status) {
    std::fprintf(stderr, "rank %d: %s: %s\n", world.rank(), what.c_str(),
                 status.error().to_string().c_str());
  }
  return static_cast<bool>(status);
}

// Small whole numbers, exact in every type. If every rank contributes the same value, their average
// divides exactly for any number of ranks.
template <typename T>
T input_of(int rank, std::size_t i) {
  return static_cast<T>((i + static_cast<std::size_t>(rank)) % 3 + 1);
}

template <typename T>
T expected_of(ReduceOp op, int size, std::size_t i) {
  T result = input_of<T>(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const T next = input_of<T>(rank, i);
    if (op == ReduceOp::kMin) {
      result = std::min(result, next);
    } else if (op == ReduceOp::kMax) {
      result = std::max(result, next);
    } else if (op == ReduceOp::kProduct) {
      result = static_cast<T>(result * next);
    } else {
      result = static_cast<T>(result + next);
    }
  }
  return op == ReduceOp::kAverage ? static_cast<T>(result / static_cast<T>(size)) : result;
}

template <typename T>
std::vector<T> inputs_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = input_of<T>(rank, i);
  return values;
}

template <typename T>
bool check_type(Communicator& world) {
  const DataType type = kDataTypeOf<T>;
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1009}, std::size_t{300'007}}) {
      const std::string what = "all_reduce of " + std::to_string(count) + " " +
                               std::string(to_string(type)) + ", " + std::string(to_string(op));
      const std::vector<T> in = inputs_of<T>(world.rank(), count);
      std::vector<T> out(count);
      if (!went(world, what, world.all_reduce(in.data(), out.data(), count, type, op)))
        return false;
      for (std::size_t i = 0; i < count; ++i) {
        if (!holds(world, what, out[i] == expected_of<T>(op, world.size(), i))) return false;
      }
    }
  }
  return true;
}

// The average of ones, halved, is exactly 0.5: sums of small numbers of ones are exact in 16-bit
// floats. `one` and `half` are the bits of 1 and 0.5.
bool check_half(Communicator& world, DataType type, std::uint16_t one, std::uint16_t half) {
  std::vector<std::uint16_t> values(5001, one);
  const std::string what = "average of " + std::string(to_string(type));
  const Reduction reduction(ReduceOp::kAverage, 1, 0.5);
  if (!went(world, what, world.all_reduce(values.data(), values.size(), type, reduction))) {
    return false;
  }
  return holds(world, what, std::count(values.begin(), values.end(), half) == 5001);
}

bool check_bools(Communicator& world) {
  std::vector<std::uint8_t> values(77, world.rank() == 0 ? 200 : 0);
  if (!went(world, "or of bools",
            world.all_reduce(values.data(), values.size(), DataType::kBool, ReduceOp::kMax))) {
    return false;
  }
  return holds(world, "or of bools", std::count(values.begin(), values.end(), 1) == 77);
}

bool check_scatters(Communicator& world) {
  const auto size = static_cast<std::size_t>(world.size());
  const auto self = static_cast<std::size_t>(world.rank());
  std::vector<std::uint64_t> counts(size);
  for (std::size_t r = 0; r < size; ++r) counts[r] = 100 * r;
  const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  const std::size_t first = 100 * self * (self - (self > 0 ? 1 : 0)) / 2;
  const auto in = inputs_of<float>(world.rank(), total);
  std::vector<float> out(counts[self]);
  const ReduceOp op = ReduceOp::kSum;
  if (!went(world, "reduce_scatter",
            world.reduce_scatter(in.data(), out.data(), counts, DataType::kFloat32, op))) {
    return false;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != expected_of<float>(op, world.size(), first + i)) {
      return holds(world, "reduce_scatter", false);
    }
  }
  std::vector<float> root(total);
  if (!went(world, "reduce",
            world.reduce(in.data(), world.rank() == 0 ? root.data() : nullptr, total,
                         DataType::kFloat32, op, 0))) {
    return false;
  }
  for (std::size_t i = 0; world.rank() == 0 && i < total; ++i) {
    if (root[i] != expected_of<float>(op, world.size(), i)) return holds(world, "reduce", false);
  }
  return true;
}

// The lengths differ between ranks, and some of them are 0.
bool check_moves(Communicator& world) {
  const auto size = static_cast<std::size_t>(world.size());
  std::vector<std::uint64_t> lengths(size);
  std::string expected;
  for (std::size_t r = 0; r < size; ++r) {
    lengths[r] = 1000 * r;
    expected += std::string(lengths[r], static_cast<char>('a' + r));
  }
  const auto self = static_cast<std::size_t>(world.rank());
  const std::string part(lengths[self], static_cast<char>('a' + self));
  std::string all(expected.size(), '.');
  if (!went(world, "all_gather", world.all_gather(part.data(), all.data(), lengths))) return false;
  if (!holds(world, "all_gather", all == expected)) return false;

  std::string word = world.rank() == world.size() - 1 ? "right" : "wrong";
  if (!went(world, "broadcast", world.broadcast(word.data(), word.size(), world.size() - 1)) ||
      !holds(world, "broadcast", word == "right")) {
    return false;
  }
  const std::vector<std::uint64_t> received(size, lengths[self]);
  const std::string sent(expected.size(), static_cast<char>('a' + self));
  std::string delivered(lengths[self] * size, '.');
  std::string from_all;
  for (std::size_t r = 0; r < size; ++r) {
    from_all += std::string(lengths[self], static_cast<char>('a' + r));
  }
  return went(world, "all_to_all",
              world.all_to_all(sent.data(), lengths, delivered.data(), received)) &&
         holds(world, "all_to_all", delivered == from_all) &&
         went(world, "barrier", world.barrier());
}

bool check_pairs(Communicator& world) {
  if (world.size() < 2) return true;
  std::vector<int> data(100'000, world.rank());
  const std::uint64_t bytes = data.size() * sizeof(int);
  if (world.rank() == 0) return went(world, "send", world.send(data.data(), bytes, 1));
  if (world.rank() > 1) return true;
  return went(world, "receive", world.receive(data.data(), bytes, 0)) &&
         holds(world, "receive", std::count(data.begin(), data.end(), 0) == 100'000);
}

bool check_group(Communicator& world) {
  std::vector<int> reversed(static_cast<std::size_t>(world.size()));
  for (int r = 0; r < world.size(); ++r) {
    reversed[static_cast<std::size_t>(r)] = world.size() - 1 - r;
  }
  Result<Communicator> group = world.group(reversed);
  if (!group) return went(world, "group", group.error());
  int who = group->rank() == 0 ? world.rank() : -1;
  return went(world, "broadcast in a group", group->broadcast(&who, sizeof(who), 0)) &&
         holds(world, "broadcast in a group", who == world.size() - 1);
}

}  // namespace

bool check_collectives(Communicator& world) {
  return check_type<float>(world) && check_type<double>(world) && check_type<std::int8_t>(world) &&
         check_type<std::uint8_t>(world) && check_type<std::int16_t>(world) &&
         check_type<std::uint16_t>(world) && check_type<std::int32_t>(world) &&
         check_type<std::uint32_t>(world) && check_type<std::int64_t>(world) &&
         check_type<std::uint64_t>(world) &&
         check_half(world, DataType::kFloat16, 0x3C00, 0x3800) &&
         check_half(world, DataType::kBFloat16, 0x3F80, 0x3F00) && check_bools(world) &&
         check_scatters(world) && check_moves(world) && check_pairs(world) && check_group(world);
}

}  // namespace muster::collective
