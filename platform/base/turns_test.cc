#include "base/turns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::base {
namespace {

/// Pieces that note their names when they begin, and end on demand.
struct NotedPieces {
  Turns::Piece piece(const std::string& name) {
    return [this, name](Turns::Done end) {
      begun.push_back(name);
      done = std::move(end);
    };
  }
  void finish() { std::exchange(done, nullptr)(); }

  std::vector<std::string> begun;
  Turns::Done done;
};

TEST(Turns, APartyWithManyPiecesDelaysAnotherByOne) {
  NotedPieces pieces;
  Turns turns;
  for (const char* const name : {"a1", "a2", "a3"}) turns.add("ada", pieces.piece(name));
  turns.add("ben", pieces.piece("b1"));
  EXPECT_EQ(pieces.begun, (std::vector<std::string>{"a1"})) << "one at a time";
  EXPECT_EQ(turns.waiting("ada"), 2U);
  for (int i = 0; i < 4; ++i) pieces.finish();
  EXPECT_EQ(pieces.begun, (std::vector<std::string>{"a1", "a2", "b1", "a3"}));
  EXPECT_EQ(turns.waiting("ada"), 0U);

  turns.add("ben", pieces.piece("b2"));
  EXPECT_EQ(pieces.begun.back(), "b2") << "nothing is in progress";
}

TEST(Turns, APieceMayBeFinishedWhenItBegins) {
  Turns turns;
  Turns::Done first;
  size_t begun = 0;
  turns.add("ada", [&](Turns::Done done) { first = std::move(done); });
  // So many that a call in a call for each would overflow the stack.
  constexpr size_t kMany = 200'000;
  for (size_t i = 0; i < kMany; ++i) {
    turns.add("ada", [&](const Turns::Done& done) {
      ++begun;
      done();
    });
  }
  first();
  EXPECT_EQ(begun, kMany);
}

TEST(Turns, ThatAreDestroyedBeginNothing) {
  NotedPieces pieces;
  auto turns = std::make_unique<Turns>();
  turns->add("ada", pieces.piece("a1"));
  turns->add("ada", pieces.piece("a2"));
  turns.reset();
  pieces.finish();
  EXPECT_EQ(pieces.begun, (std::vector<std::string>{"a1"}));
}

}  // namespace
}  // namespace muster::base
