#include "base/byte_queue.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(ByteQueue, GivesInFrontWhatWasAddedBehind) {
  ByteQueue queue;
  queue.add("one ");
  queue.add("two");

  queue.take(2);
  queue.add(" three");

  EXPECT_EQ(queue.front(), "e two three");
  EXPECT_EQ(queue.size(), 11U);
  queue.take(11);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.kept(), 0U);
}

TEST(ByteQueue, KeepsLittleOfWhatWasTakenHoweverMuchGoesThrough) {
  constexpr size_t kPiece = 1000;
  const std::string piece(kPiece, 'x');
  ByteQueue queue;
  queue.add(piece);
  for (int i = 0; i < 1000; ++i) {  // it is never empty
    queue.add(piece);
    queue.take(kPiece);
    ASSERT_LE(queue.kept(), 3 * kPiece);
  }
  EXPECT_EQ(queue.front(), piece);
}

}  // namespace
}  // namespace muster::base
