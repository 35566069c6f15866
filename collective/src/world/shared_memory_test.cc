#include "world/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace muster::collective {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;

TEST(SharedMemory, IsZeroAtFirstAndEqualInAllMappings) {
  Result<Descriptor> file = SharedMemory::create(kBytes);
  ASSERT_TRUE(file);
  Descriptor copy(::dup(file->get()));
  const Result<SharedMemory> one = SharedMemory::map(*std::move(file));
  const Result<SharedMemory> other = SharedMemory::map(std::move(copy));
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->base(), other->base());
  EXPECT_EQ(other->base()[kBytes - 1], std::byte{0});
  one->base()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(other->base()[kBytes - 1], std::byte{7});
}

TEST(SharedMemory, LargerThanTheSystemsMemoryCostsNothingUntilItIsWritten) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 42;
  Result<Descriptor> file = SharedMemory::create(kHuge);
  ASSERT_TRUE(file) << file.error().to_string();
  const Result<SharedMemory> memory = SharedMemory::map(*std::move(file));
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (!memory) GTEST_SKIP() << "the sanitizer leaves too little address space";
#endif
  ASSERT_TRUE(memory) << memory.error().to_string();
  EXPECT_EQ(memory->bytes(), kHuge);
  EXPECT_TRUE(memory->reserve(kHuge / 2, 4096));
}

TEST(SharedMemory, OfManyRanksLeavesAddressSpaceForOtherWorlds) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 40;
  for (const int ranks : {1, 64, 256, 1'024, 65'536}) {
    EXPECT_LE(default_arena_bytes(ranks) * static_cast<std::uint64_t>(ranks), kMost) << ranks;
  }
  EXPECT_EQ(default_arena_bytes(8), default_arena_bytes(1)) << "the limit is for more ranks";
}

TEST(SharedMemory, MovesWithItsOwner) {
  Result<SharedMemory> made = SharedMemory::map(*SharedMemory::create(kBytes));
  SharedMemory memory = *std::move(made);
  EXPECT_TRUE(memory);
  EXPECT_FALSE(*made);  // NOLINT(bugprone-use-after-move): the test is about the moved-from value
  SharedMemory other;
  other = std::move(memory);
  EXPECT_EQ(other.bytes(), kBytes);
}

}  // namespace
}  // namespace muster::collective
