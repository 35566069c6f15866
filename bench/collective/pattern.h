// What stands in the buffers. Each rank writes before every call and compares every byte after it,
// so that the data is where a training program has it, in the caches of the rank that computed it,
// and so that a wrong result is no figure.
//
// The values are small whole numbers, whose sum every type here holds exactly. They repeat with a
// prime period, so that a part that came to the wrong place does not look right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

enum class Type { kFloat32, kFloat16, kBFloat16 };

Type type_named(const std::string& name);
std::uint64_t size_of(Type type);

class Pattern {
 public:
  Pattern(Type type, int rank, int ranks);

  /// Every call has values of its own: the pattern moves on by an element.
  void advance() { place_ = place_ + element_ == end_ ? 0 : place_ + element_; }

  void write(void* data, std::uint64_t bytes) const;

  /// Whether `data` is the sum of what all ranks wrote since they last advanced.
  bool is_sum(const void* data, std::uint64_t bytes) const;

 private:
  std::uint64_t element_;
  std::uint64_t end_;               // bytes of a period
  std::uint64_t place_ = 0;         // bytes into it
  std::vector<unsigned char> own_;  // some periods, which stay in the first cache
  std::vector<unsigned char> sum_;
};

/// Reads all of it, where there is nothing to compare with.
void read_through(const void* data, std::uint64_t bytes);

}  // namespace bench
