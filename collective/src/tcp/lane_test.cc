#include "tcp/lane.h"

#include <gtest/gtest.h>

namespace muster::collective::tcp {
namespace {

TEST(Stripes, AMessageOfOneChunkUsesTheFirstConnectionAlone) {
  const Stripes stripes(kChunkBytes, 2);
  EXPECT_EQ(stripes.run(0), kChunkBytes);
  EXPECT_EQ(stripes.run(1), 0U);
}

TEST(Stripes, ChunksTakeTurns) {
  Stripes stripes(3 * kChunkBytes + 5, 2);
  stripes.advance(0, kChunkBytes);
  EXPECT_EQ(stripes.position(0), 2 * kChunkBytes);
  EXPECT_EQ(stripes.position(1), kChunkBytes);
  stripes.advance(1, kChunkBytes);
  EXPECT_EQ(stripes.position(1), 3 * kChunkBytes);
  EXPECT_EQ(stripes.run(1), 5U);
}

TEST(Stripes, ThePrefixStopsAtTheFirstGap) {
  Stripes stripes(2 * kChunkBytes, 2);
  stripes.advance(1, kChunkBytes);
  stripes.advance(0, 10);
  EXPECT_EQ(stripes.prefix(), 10U);
  EXPECT_FALSE(stripes.done());
  stripes.advance(0, kChunkBytes - 10);
  EXPECT_TRUE(stripes.done());
}

TEST(Stripes, AnEmptyMessageIsDoneAtOnce) {
  EXPECT_TRUE(Stripes(0, 4).done());
  EXPECT_EQ(Stripes(0, 4).run(0), 0U);
}

}  // namespace
}  // namespace muster::collective::tcp
