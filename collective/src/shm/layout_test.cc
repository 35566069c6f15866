#include "shm/layout.h"

#include <gtest/gtest.h>

#include <cstring>

namespace muster::collective::shm {
namespace {

constexpr std::uint64_t kBytes = 8 << 20;

SharedMemory some_memory() {
  Result<Descriptor> file = SharedMemory::create(kBytes);
  return *SharedMemory::map(*std::move(file));
}

TEST(Arena, AllocatesAlignedBlocksThatDoNotOverlap) {
  const SharedMemory memory = some_memory();
  Arena arena(memory, 4096, kBytes - 4096);
  void* const one = arena.allocate(1);
  void* const other = arena.allocate(100);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one) % 64, 0u);
  EXPECT_EQ(static_cast<std::byte*>(other) - static_cast<std::byte*>(one), 64);
  std::memset(other, 1, 100);
}

TEST(Arena, ReturnsNullIfThereIsNoRoom) {
  const SharedMemory memory = some_memory();
  Arena arena(memory, 0, kBytes);
  EXPECT_EQ(arena.allocate(kBytes + 1), nullptr);
  EXPECT_EQ(arena.allocate(~std::uint64_t{0}), nullptr);
  void* const all = arena.allocate(kBytes);
  EXPECT_NE(all, nullptr);
  EXPECT_EQ(arena.allocate(1), nullptr);
  arena.free(all);
  EXPECT_EQ(arena.allocate(kBytes), all);
}

TEST(Arena, MergesFreeNeighbours) {
  const SharedMemory memory = some_memory();
  Arena arena(memory, 0, kBytes);
  std::vector<void*> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(arena.allocate(kBytes / 8));
  for (const int i : {1, 3, 2, 0, 7, 5, 6, 4}) arena.free(pieces[static_cast<std::size_t>(i)]);
  EXPECT_NE(arena.allocate(kBytes), nullptr);
}

TEST(Arena, IgnoresMemoryOfOtherOrigin) {
  const SharedMemory memory = some_memory();
  Arena arena(memory, 0, kBytes);
  int elsewhere = 0;
  arena.free(nullptr);
  arena.free(&elsewhere);
  void* const piece = arena.allocate(64);
  arena.free(static_cast<std::byte*>(piece) + 1);
  arena.free(piece);
  arena.free(piece);
  EXPECT_EQ(arena.allocate(kBytes), piece);
}

}  // namespace
}  // namespace muster::collective::shm
