#include "hierarchy/chunks.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

namespace muster::collective {
namespace {

// Addresses that are compared and never read.
std::byte* address(std::uintptr_t number) {
  return std::bit_cast<std::byte*>(number);
}

TEST(Chunks, ALongTensorIsCutWhereItLies) {
  const Piece piece = {address(0x1000), address(0x2000'0000), (Chunks::kBytes + 8) / 4};
  const Chunks chunks({&piece, 1}, 4);

  const Chunk first = chunks.at(0);
  EXPECT_EQ(first.bytes, Chunks::kBytes);
  EXPECT_EQ(first.in, piece.in);
  const Chunk second = chunks.at(Chunks::kBytes);
  EXPECT_EQ(second.bytes, 8U);
  EXPECT_EQ(second.in, piece.in + Chunks::kBytes);
  EXPECT_EQ(second.out, piece.out + Chunks::kBytes);
}

TEST(Chunks, ShortTensorsArePackedTogether) {
  std::vector<Piece> pieces(10, Piece{address(0x1000), address(0x2000), 25});
  const Chunks chunks(pieces, 4);

  const Chunk all = chunks.at(0);
  EXPECT_EQ(all.bytes, 1000U);
  EXPECT_EQ(all.in, nullptr);
}

TEST(Chunks, TheLastTensorNeedsNoPacking) {
  const std::array<Piece, 2> pieces = {Piece{address(0x1000), address(0x1000), 5},
                                       Piece{address(0x9000), address(0x9000), 5}};
  EXPECT_EQ(Chunks(pieces, 4).at(20).in, address(0x9000));
}

}  // namespace
}  // namespace muster::collective
