#include "session/memory_in_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "session/operation.h"

namespace muster::collective::session {
namespace {

struct Used {
  const Operation* operation;
  std::vector<MemorySpan> spans;
};

bool overlap(const MemorySpan& a, const MemorySpan& b) {
  return a.bytes > 0 && b.bytes > 0 && a.begin < b.end() && b.begin < a.end();
}

// Whether the two pieces must not be in use at the same time.
bool conflict(const MemorySpan& a, const MemorySpan& b) {
  return (a.is_written || b.is_written) && overlap(a, b);
}

// What conflict_with() is to find, by comparing every pair.
std::vector<const Operation*> conflicts_of(const std::vector<MemorySpan>& requested,
                                           const std::vector<Used>& in_use) {
  std::vector<const Operation*> found;
  for (const Used& used : in_use) {
    const bool any = std::ranges::any_of(used.spans, [&](const MemorySpan& span) {
      return std::ranges::any_of(requested,
                                 [&](const MemorySpan& each) { return conflict(span, each); });
    });
    if (any) found.push_back(used.operation);
  }
  return found;
}

TEST(MemoryInUse, AgreesWithAComparisonOfEveryPair) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  std::array<std::byte, 400> memory = {};
  std::vector<Operation> operations(5000);
  MemoryInUse tracked;
  std::vector<Used> in_use;
  std::size_t refused = 0;
  for (const Operation& operation : operations) {
    std::vector<MemorySpan> requested;
    const std::size_t count = below(4) == 0 ? 9 + below(5) : 1 + below(3);
    while (requested.size() < count) {
      // Mostly short, so that many fit at the same time; sometimes empty.
      const MemorySpan span{memory.data() + below(360), below(8) == 0 ? below(40) : below(6),
                            below(2) == 0};
      const bool apart = std::ranges::none_of(requested, [&](const MemorySpan& other) {
        return span.is_written && other.is_written && overlap(span, other);
      });
      if (apart) requested.push_back(span);
    }
    const std::vector<const Operation*> expected = conflicts_of(requested, in_use);
    const Operation* const found = tracked.conflict_with(requested);
    ASSERT_EQ(found != nullptr, !expected.empty());
    if (found != nullptr) {
      ++refused;
      ASSERT_TRUE(std::ranges::count(expected, found));
    } else {
      tracked.add(operation, requested);
      in_use.push_back({&operation, requested});
    }
    while (in_use.size() > below(12)) {
      const auto ended = in_use.begin() + static_cast<std::ptrdiff_t>(below(in_use.size()));
      tracked.remove(*ended->operation, ended->spans);
      in_use.erase(ended);
    }
  }
  EXPECT_GT(refused, 500u);
  EXPECT_LT(refused, 4500u);
}

}  // namespace
}  // namespace muster::collective::session
